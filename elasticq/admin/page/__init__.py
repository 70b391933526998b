"""The page of the admin port: server-rendered HTML with its own copies of htmx and uPlot."""
