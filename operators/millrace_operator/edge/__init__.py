"""Where the operator touches the world: the API server, drivers, brokers, HTTP. Thin; decisions are made elsewhere."""
