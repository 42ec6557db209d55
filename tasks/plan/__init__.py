"""The plan: samples x rubrics x judges into requests. Nothing is asked here."""
