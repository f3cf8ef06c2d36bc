//! Concurrent decisions on the same approvals in two processes: each call is made exactly once if approved, and never
//! if denied.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use threadkeep_agent::{Agent, AgentError, ApprovalState, Definition, FnTool, Verdict};
use threadkeep_core::{JsonText, Map, Scope, ThreadId, ToolContext, ToolError, ToolOutput};
use threadkeep_memory::Memory;
use threadkeep_models::{Reply, ScriptedModel, Turn};

use super::crash::backend;
use crate::random::{Random, fresh_seed};

const PROCESSES: u64 = 2;
const DECIDERS: u64 = 4;

/// Arguments of `threadkeep-bench agent race`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of approvals
    #[arg(long, default_value_t = 500)]
    approvals: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder for the store
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// Arguments of a process with deciders.
#[derive(Debug, clap::Args)]
pub(crate) struct ChildArgs {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenApproval {
    thread: ThreadId,
    approval: String,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    approvals: usize,
    done: usize,
    denied: usize,
    /// Decisions on approvals that another decider had already approved or denied.
    late: u64,
    /// The number of deciders whose decision was stored at least once, because it came first.
    winners: usize,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-race-").tempdir_in(&args.folder)?;
    let agent = agent(folder.path())?;
    let scope = scope()?;
    let mut open = Vec::new();
    for _ in 0..args.approvals {
        let thread = agent.memory().open(&scope).await?.thread.id;
        let turn = agent.chat(&scope, thread, "Do it").await?;
        let approval = turn.approvals.first().context("no approval was requested")?.id.clone();
        open.push(OpenApproval { thread, approval });
    }
    std::fs::write(folder.path().join("open"), serde_json::to_vec(&open)?)?;
    let seed = fresh_seed();
    let children = (0..PROCESSES).map(|process| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["agent", "race-child", "--folder"]).arg(folder.path());
        command.arg("--seed").arg((seed ^ process).to_string()).stdout(Stdio::piped());
        Ok(command.spawn()?)
    });
    let mut report = Report { approvals: open.len(), ..Report::default() };
    for child in children.collect::<Result<Vec<_>>>()? {
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "deciders failed with seed {seed}");
        report.late += String::from_utf8(output.stdout)?.trim().parse::<u64>()?;
    }
    check(&agent, &scope, folder.path(), &open, &mut report).await.with_context(|| format!("with seed {seed}"))?;
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report:#?}");
    }
    Ok(())
}

async fn check(agent: &Agent, scope: &Scope, folder: &Path, open: &[OpenApproval], report: &mut Report) -> Result<()> {
    let mut winners = BTreeSet::new();
    let mut ran: BTreeMap<String, u64> = BTreeMap::new();
    for line in std::fs::read_to_string(folder.join("ran")).unwrap_or_default().lines() {
        *ran.entry(line.to_owned()).or_default() += 1;
    }
    for OpenApproval { thread, approval } in open {
        let found = agent.approvals(scope, *thread).await?;
        let found = found.into_iter().find(|found| found.id == *approval).context("approval not found")?;
        let state = found.state;
        winners.insert(found.by);
        let times = ran.get(approval).copied().unwrap_or(0);
        match state {
            ApprovalState::Done => report.done += 1,
            ApprovalState::Denied => report.denied += 1,
            other => anyhow::bail!("approval {approval} is {other}"),
        }
        ensure!(
            times == u64::from(state == ApprovalState::Done),
            "approval {approval} is {state} and ran {times} times"
        );
        let messages = agent.memory().newest(scope, *thread, 20).await?;
        ensure!(messages.len() == 6, "the conversation has {} messages", messages.len());
    }
    report.winners = winners.len();
    Ok(())
}

pub(crate) async fn run_child(args: &ChildArgs) -> Result<()> {
    let agent = agent(&args.folder)?;
    let open: Vec<OpenApproval> = serde_json::from_slice(&std::fs::read(args.folder.join("open"))?)?;
    let deciders = (0..DECIDERS).map(|decider| {
        let (agent, open) = (agent.clone(), open.clone());
        let seed = args.seed;
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(decider));
        tokio::spawn(async move {
            let (scope, mut late) = (scope()?, 0_u64);
            for OpenApproval { thread, approval } in open {
                let verdict = match random.below(2) {
                    0 => Verdict::Approve,
                    _ => Verdict::Deny { reason: None },
                };
                let by = format!("decider {decider} of {seed}");
                match agent.decide(&scope, thread, &approval, verdict, &by, &mut |_| {}).await {
                    Ok(_) => {}
                    Err(AgentError::ApprovalClosed { .. }) => late += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            anyhow::Ok(late)
        })
    });
    let mut late = 0;
    for decider in deciders.collect::<Vec<_>>() {
        late += decider.await??;
    }
    println!("{late}");
    Ok(())
}

fn scope() -> Result<Scope> {
    Ok(Scope::user("acme", "ana")?)
}

fn agent(folder: &Path) -> Result<Agent> {
    let ran = folder.join("ran");
    let parameters = JsonText::new(r#"{"type":"object"}"#)?;
    let work = FnTool::with_schema("work", "Works", parameters, move |context: ToolContext, _: Map| {
        let ran = ran.clone();
        async move {
            let failed = |error: std::io::Error| ToolError::Failed(error.to_string());
            let mut ran = OpenOptions::new().create(true).append(true).open(ran).map_err(failed)?;
            ran.write_all(format!("{}\n", context.approval.unwrap_or_default()).as_bytes()).map_err(failed)?;
            Ok(ToolOutput::text("worked"))
        }
    });
    let model = ScriptedModel::always(|request| match Turn::of(request).exchanges().len() {
        0 => Ok(Reply::call("work", json!({}))),
        _ => Ok(Reply::text("Over.")),
    });
    let definition = Definition::new("race", Arc::new(model)).with_tool(work.with_side_effects(|_| "work".to_owned()));
    Ok(Agent::new(Memory::new(backend(&folder.join("store.db"))?), definition))
}
