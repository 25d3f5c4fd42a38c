"""Reads a run from a file store with the real MLflow client, and prints it as JSON.

Usage: mlflow_read.py STORE-DIRECTORY RUN-NAME
"""

import json
import os
import sys

# Newer versions of MLflow discourage file stores in favour of a database, and read them if told to.
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

from mlflow.tracking import MlflowClient  # noqa: E402


def main():
    store, name = sys.argv[1:]
    client = MlflowClient("file://" + os.path.abspath(store))
    experiments = [e for e in client.search_experiments() if e.name == "rem"]
    runs = client.search_runs([e.experiment_id for e in experiments])
    [run] = [run for run in runs if run.info.run_name == name]
    history = {
        key: [[point.step, point.value] for point in client.get_metric_history(run.info.run_id, key)]
        for key in run.data.metrics
    }
    found = {
        "experiments": len(experiments),
        "status": run.info.status,
        "params": run.data.params,
        "tags": run.data.tags,
        "history": history,
    }
    print(json.dumps(found))


main()
