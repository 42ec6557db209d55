"""The stages of a run. The only place with disk, network and databases; flows wire the stages together."""
