# python/tandem/plots/_report/__init__.py: still pictures of the panels of a report's page.
"""`names` needs nothing but Python, so that wrong names are found before matplotlib is loaded."""
