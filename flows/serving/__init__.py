"""Setting up Prefect: deployments on a server, and a server of this machine's own. What is set up stands in infra/."""
