"""`salon verify` and bundles: a publication reopened, made again and compared. How rows are compared is tasks/verify/."""
