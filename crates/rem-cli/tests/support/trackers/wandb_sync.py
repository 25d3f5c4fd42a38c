"""Uploads an offline run with the real `wandb sync` to an address of this machine, and prints what arrives as JSON.

The address answers as W&B's API does, as far as `wandb sync` asks; nothing leaves this machine.

Usage: wandb_sync.py OFFLINE-RUN-DIRECTORY
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

received = {"run": None, "history": [], "summary": None, "exit_code": None}


def bucket(variables):
    if variables.get("config"):
        received["run"] = {
            "id": variables["name"],
            "name": variables.get("displayName") or (received["run"] or {}).get("name"),
            "project": variables["project"],
            "config": json.loads(variables["config"]),
        }
    project = {"id": "p", "name": variables["project"], "entity": {"id": "e", "name": "me"}}
    run = {"id": "b", "name": variables["name"], "displayName": variables["displayName"], "config": "{}"}
    return {"upsertBucket": {"bucket": run | {"project": project, "historyLineCount": 0}, "inserted": True}}


class Endpoint(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def body(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return body

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.body()
        if self.path.endswith("/graphql"):
            request = json.loads(body)
            answer = {}
            if "upsertBucket" in request["query"]:
                answer = bucket(request["variables"])
            elif "createRunFiles" in request["query"]:
                host = f"http://{self.headers['host']}/upload/"
                files = [{"name": name, "uploadUrl": host + name} for name in request["variables"]["files"]]
                answer = {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}
            return self.answer({"data": answer})
        if self.path.endswith("/file_stream"):
            content = json.loads(body)
            files = content.get("files") or {}
            for line in files.get("wandb-history.jsonl", {}).get("content", []):
                received["history"].append(json.loads(line))
            for line in files.get("wandb-summary.json", {}).get("content", []):
                received["summary"] = json.loads(line)
            if content.get("complete"):
                received["exit_code"] = content.get("exitcode")
        self.answer({})

    def do_PUT(self):
        self.body()
        self.answer({})

    def do_GET(self):
        self.answer({})


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tempfile.mkdtemp()
    environment = os.environ | {
        "HOME": home,
        "WANDB_CONFIG_DIR": home,
        "WANDB_CACHE_DIR": home,
        "WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "WANDB_API_KEY": "0" * 40,
        "WANDB_ERROR_REPORTING": "false",
    }
    command = [str(pathlib.Path(sys.executable).parent / "wandb"), "sync", sys.argv[1]]
    synced = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, cwd=home)
    if synced.returncode:
        sys.exit(f"wandb sync failed:\n{synced.stdout}\n{synced.stderr}")
    print(json.dumps(received))


main()
