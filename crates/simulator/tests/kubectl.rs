//! Tests of the simulated cluster with kubectl: with Debian's version, and with the one on the `PATH`.
//!
//! `cargo xtask test` unpacks Debian's package into the folder `tools/kubectl` of the target folder.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_simulator::cluster::{Cluster, World};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the programs to test; none if `cargo xtask test` could not install one.
fn programs() -> Vec<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let debian = test.ancestors().nth(3).unwrap().join("tools/kubectl/usr/bin/kubectl");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|program| program.is_file());
    let programs: Vec<PathBuf> = debian.is_file().then_some(debian).into_iter().chain(on_path).collect();
    let is_skipped =
        std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == "kubectl"));
    assert!(is_skipped || !programs.is_empty(), "`cargo xtask test` installs kubectl");
    programs
}

/// A cluster and a kubectl.
struct Bench {
    cluster: Cluster,
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Starts a cluster for each program.
    async fn each() -> Vec<Self> {
        let mut all = Vec::new();
        for program in programs() {
            let world = World::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world")).unwrap();
            let cluster = Cluster::start(world).await.unwrap();
            assert_eq!(cluster.refused(), [] as [String; 0]);
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("config"), cluster.kubeconfig()).unwrap();
            all.push(Self { cluster, program, folder });
        }
        all
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(line.split(' ')).current_dir(self.folder.path()).stdin(Stdio::null()).kill_on_drop(true);
        command.env("KUBECONFIG", self.folder.path().join("config")).env("HOME", self.folder.path());
        // Proxies in the environment must not be used for the loopback interface.
        command.env("NO_PROXY", "*");
        command
    }

    /// Runs a command line. Returns its standard output if it succeeds, otherwise its standard error.
    async fn run(&self, line: &str) -> Result<String, String> {
        let output = tokio::time::timeout(COMMAND_TIMEOUT, self.command(line).output()).await.unwrap().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Runs a command line that succeeds.
    async fn succeed(&self, line: &str) -> String {
        let result = self.run(line).await;
        result.unwrap_or_else(|error| panic!("{}: kubectl {line}: {error}", self.program.display()))
    }

    /// Runs a command line that fails, and returns its error.
    async fn fail(&self, line: &str) -> String {
        let result = self.run(line).await;
        result.expect_err(&format!("{}: kubectl {line}", self.program.display()))
    }

    fn deployment(&self, name: &str) -> Value {
        self.cluster.object("apps", "deployments", "shop", name).unwrap()
    }

    fn image(&self, name: &str) -> Value {
        self.deployment(name)["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    }
}

/// Returns the words of each line, so that the widths of columns do not matter.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test]
async fn kubectl_reads() {
    for bench in Bench::each().await {
        let pods = bench.succeed("get pods -n shop -o wide").await;
        let pods = words(&pods);
        assert_eq!(pods[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]);
        assert_eq!(pods[1][..4], ["api-7b4f9c6d5-x1x9k", "1/1", "Running", "2"]);
        assert_eq!(pods[1][6], "node-1");
        assert_eq!(pods.len(), 3);
        assert_eq!(
            bench.succeed("get pods -A -l app=api -o name").await,
            "pod/api-7b4f9c6d5-x1x9k\npod/api-7b4f9c6d5-x2x9k\n"
        );
        for (kinds, row) in [
            ("deploy", ["api", "2/2"]),
            ("sts", ["redis", "0/1"]),
            ("ds", ["agent", "1"]),
            ("svc", ["api", "ClusterIP"]),
            ("cm", ["settings", "1"]),
            ("secret", ["keys", "Opaque"]),
        ] {
            let listed = bench.succeed(&format!("get {kinds} -n shop --no-headers")).await;
            assert_eq!(words(&listed)[0][..2], row, "{kinds}");
        }
        let events = bench.succeed("get events -n shop").await;
        assert!(events.contains("BackOff") && events.contains("pod/api-7b4f9c6d5-x1x9k"), "{events}");
        assert_eq!(words(&bench.succeed("get nodes --no-headers").await)[0][..2], ["node-1", "Ready"]);
        let by_path = "get deploy api -n shop -o jsonpath={.spec.replicas}/{.status.readyReplicas}";
        assert_eq!(bench.succeed(by_path).await, "2/2");
        let described = bench.succeed("describe deploy api -n shop").await;
        assert!(described.contains("2 desired | 2 updated | 2 total | 2 available"), "{described}");
        assert!(described.contains("(2/2 replicas created)") && described.contains("api:1"), "{described}");
        let described = bench.succeed("describe pod api-7b4f9c6d5-x1x9k -n shop").await;
        assert!(described.contains("Controlled By:") && described.contains("BackOff"), "{described}");
        let described = bench.succeed("describe secret keys -n shop").await;
        assert!(described.contains("token:") && !described.contains("c2VjcmV0"), "{described}");
        assert!(bench.succeed("describe node node-1").await.contains("KubeletReady"));
        assert_eq!(bench.fail("get pod web -n shop").await, "Error from server (NotFound): pods \"web\" not found\n");
        assert_eq!(bench.cluster.changes(), []);
    }
}

#[tokio::test]
async fn kubectl_reads_logs_and_usage() {
    for bench in Bench::each().await {
        let log = "starting x1\nlistening on 8080\n";
        assert_eq!(bench.succeed("logs api-7b4f9c6d5-x1x9k -n shop").await, log);
        assert_eq!(bench.succeed("logs -f api-7b4f9c6d5-x1x9k -n shop -c api").await, log);
        assert_eq!(bench.succeed("logs deploy/api -n shop --tail=1").await, "listening on 8080\n");
        // The order of the pods is not specified.
        let both = bench.succeed("logs -l app=api -n shop").await;
        assert!(both.contains(log) && both.contains("starting x2\nlistening on 8080\n"), "{both}");
        assert_eq!(bench.succeed("logs api-7b4f9c6d5-x1x9k -n shop -p").await, "out of memory\n");
        let missing = bench.fail("logs api-7b4f9c6d5-x2x9k -n shop -p").await;
        assert!(missing.contains("previous terminated container \"api\""), "{missing}");
        assert!(bench.fail("logs api-7b4f9c6d5-x2x9k -n shop -c web").await.contains("web"));
        let usage = bench.succeed("top pods -n shop --no-headers").await;
        assert_eq!(words(&usage), [["api-7b4f9c6d5-x1x9k", "12m", "64Mi"]]);
        let usage = bench.succeed("top nodes --no-headers").await;
        assert_eq!(words(&usage), [["node-1", "512m", "12%", "2048Mi", "25%"]]);
    }
}

#[tokio::test]
async fn kubectl_scales_and_deletes() {
    for bench in Bench::each().await {
        bench.succeed("scale deploy/api -n shop --replicas=3").await;
        assert_eq!(bench.cluster.names("", "pods", "shop").len(), 3);
        let refused = bench.fail("scale deploy/api -n shop --replicas=9 --current-replicas=7").await;
        assert!(refused.contains("Expected replicas to be 7, was 3"), "{refused}");
        bench.succeed("scale sts redis -n shop --replicas=2").await;
        assert_eq!(bench.cluster.names("", "pods", "shop").len(), 5);

        // The pod is replaced, and kubectl waits until the old one is gone.
        bench.succeed("delete pod api-7b4f9c6d5-x1x9k -n shop").await;
        let names = bench.cluster.names("", "pods", "shop");
        assert!(names.len() == 5 && !names.contains(&"api-7b4f9c6d5-x1x9k".to_owned()), "{names:?}");
        assert!(bench.fail("delete pod api-7b4f9c6d5-x1x9k -n shop").await.contains("NotFound"));

        bench.succeed("delete deploy api -n shop").await;
        assert_eq!(bench.cluster.names("", "pods", "shop"), ["redis-0", "redis-1"]);
        bench.succeed("delete ns shop").await;
        assert_eq!(bench.cluster.names("", "pods", "shop"), [] as [String; 0]);
        std::fs::write(bench.folder.path().join("objects.yaml"), MANIFEST).unwrap();
        let refused = bench.fail("create --validate=false -f objects.yaml").await;
        assert!(refused.contains("namespaces \"shop\" not found"), "{refused}");
    }
}

#[tokio::test]
async fn kubectl_rolls_out_and_back() {
    for bench in Bench::each().await {
        bench.succeed("set image deploy/api api=api:2 -n shop").await;
        let done = "deployment \"api\" successfully rolled out\n";
        assert_eq!(bench.succeed("rollout status deploy/api -n shop").await, done);
        assert_eq!(bench.image("api"), "api:2");
        let history = bench.succeed("rollout history deploy/api -n shop").await;
        let revisions: Vec<&str> =
            words(&history).into_iter().filter_map(|line| line.first().copied()).skip(2).collect();
        assert_eq!(revisions, ["1", "2"], "{history}");
        let first = bench.succeed("rollout history deploy/api -n shop --revision=1").await;
        assert!(first.contains("api:1"), "{first}");

        bench.succeed("rollout undo deploy/api -n shop").await;
        assert_eq!(bench.image("api"), "api:1");
        let before = bench.cluster.names("", "pods", "shop");
        bench.succeed("rollout restart deploy/api -n shop").await;
        let after = bench.cluster.names("", "pods", "shop");
        assert!(after.len() == 2 && !after.iter().any(|name| before.contains(name)), "{before:?} {after:?}");
        bench.succeed("rollout pause deploy/api -n shop").await;
        assert_eq!(bench.deployment("api")["spec"]["paused"], true);
        bench.succeed("rollout resume deploy/api -n shop").await;
        assert!(bench.deployment("api")["spec"]["paused"].as_bool().is_none_or(|is_paused| !is_paused));
    }
}

const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {level: debug, color: red}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: \"web:1\"}, {name: log, image: \"tail:1\"}]}
";

#[tokio::test]
async fn kubectl_applies() {
    for bench in Bench::each().await {
        let apply = "apply --validate=false -f objects.yaml";
        let write = |text: &str| std::fs::write(bench.folder.path().join("objects.yaml"), text).unwrap();
        write(MANIFEST);
        let applied = bench.succeed(apply).await;
        assert_eq!(applied, "configmap/settings configured\ndeployment.apps/web created\n");
        assert_eq!(bench.succeed(apply).await, "configmap/settings unchanged\ndeployment.apps/web unchanged\n");
        // What another client changed stays, and what the file no longer contains is removed.
        bench.succeed("label cm settings -n shop tier=front").await;
        write(&MANIFEST.replace(", color: red", "").replace("web:1", "web:2"));
        assert_eq!(bench.succeed(apply).await, "configmap/settings configured\ndeployment.apps/web configured\n");
        let settings = bench.cluster.object("", "configmaps", "shop", "settings").unwrap();
        assert_eq!(settings["data"], json!({ "level": "debug" }));
        assert_eq!(settings["metadata"]["labels"], json!({ "tier": "front" }));
        let containers = bench.deployment("web")["spec"]["template"]["spec"]["containers"].clone();
        assert_eq!(containers, json!([{ "name": "web", "image": "web:2" }, { "name": "log", "image": "tail:1" }]));
        write(&MANIFEST.replace(", {name: log, image: \"tail:1\"}", "").replace("web:1", "web:2"));
        bench.succeed(apply).await;
        let containers = bench.deployment("web")["spec"]["template"]["spec"]["containers"].clone();
        assert_eq!(containers, json!([{ "name": "web", "image": "web:2" }]));

        write(&MANIFEST.replace("replicas: 1", "replicas: -1"));
        let refused = bench.fail(apply).await;
        assert!(refused.contains("must be greater than or equal to 0"), "{refused}");
        bench.succeed("delete -f objects.yaml").await;
        assert!(bench.cluster.object("", "configmaps", "shop", "settings").is_none());
        assert!(!bench.cluster.names("", "pods", "shop").iter().any(|name| name.starts_with("web-")));
    }
}

#[tokio::test]
async fn kubectl_cordons_and_drains() {
    for bench in Bench::each().await {
        bench.succeed("cordon node-1").await;
        let nodes = bench.succeed("get nodes --no-headers").await;
        assert!(nodes.contains("Ready,SchedulingDisabled"), "{nodes}");
        bench.succeed("uncordon node-1").await;
        bench.succeed("drain node-1 --ignore-daemonsets").await;
        let evictions = bench.cluster.changes().into_iter().filter(|request| request.subresource.is_some()).count();
        assert_eq!(evictions, 2);
        let left = bench.cluster.names("", "pods", "shop");
        assert!(left.len() == 2 && !left.iter().any(|name| name.starts_with("api-7b4f9c6d5-x")), "{left:?}");
    }
}

#[tokio::test]
async fn kubectl_reports_what_it_may_not_do() {
    for bench in Bench::each().await {
        bench.cluster.deny("delete", "pods", "shop");
        let refused = bench.fail("delete pod api-7b4f9c6d5-x1x9k -n shop").await;
        assert_eq!(
            refused.trim(),
            "Error from server (Forbidden): pods \"api-7b4f9c6d5-x1x9k\" is forbidden: User \"bot\" cannot delete resource \"pods\" in API \
             group \"\" in the namespace \"shop\""
        );
        assert_eq!(bench.cluster.names("", "pods", "shop").len(), 2);
    }
}

/// A watch starts at the version of the list before it, so that no change in between is lost.
#[tokio::test]
async fn kubectl_watches() {
    for bench in Bench::each().await {
        let mut command = bench.command("get pods -n shop --watch --no-headers");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next =
            async || tokio::time::timeout(COMMAND_TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
        assert!(next().await.starts_with("api-7b4f9c6d5-x1x9k"));
        assert!(next().await.starts_with("api-7b4f9c6d5-x2x9k"));
        bench.cluster.edit("", "pods", "shop", "api-7b4f9c6d5-x2x9k", |pod| {
            pod["status"]["containerStatuses"][0]["state"] = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        });
        let changed = next().await;
        assert!(changed.starts_with("api-7b4f9c6d5-x2x9k") && changed.contains("CrashLoopBackOff"), "{changed}");
        child.kill().await.unwrap();
    }
}
