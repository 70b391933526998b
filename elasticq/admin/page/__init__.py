"""The page of the admin port: server-rendered HTML, with htmx and uPlot beside it, and nothing from elsewhere."""
