"""The sample project is type-checked, and not run."""

collect_ignore = ["sample_project"]
