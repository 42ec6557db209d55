"""Pictures opened, checked and prepared within bounds; the one place that decodes."""
