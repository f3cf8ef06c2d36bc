//! How to handle an effect: execute it, finish it with a known outcome, or wait for a person's decision.

use std::sync::Arc;

use threadkeep_core::{JsonText, ToolCall, ToolEffect, Value};
use threadkeep_graph::{Decision, Effect, Failure, ModelRequest, Outcome, RequestId};

use crate::executor::{EffectExecutor, ToolInvocation, parse_arguments, refused_call};
use crate::record::RecordedEvent;
use crate::run_state::RunState;
use crate::{Activity, Approval, ApprovalState, RetryPolicy};

/// Maximum number of approvals that one turn requests.
const MAX_APPROVALS: usize = 16;

/// The result of a call that must not be repeated and during which the process ended.
const OUTCOME_UNKNOWN: &str = "outcome unknown: the process ended during this call; the call is not repeated";

/// How to handle an effect.
pub(crate) enum EffectPlan {
    CallModel(RequestId, Box<ModelRequest>),
    CallTool(Box<ToolInvocation>),
    /// An activity or call that must not be repeated (`is_once`) is listed in the stored run record before it starts. For a call with
    /// an approval, the approval has the same purpose.
    RunActivity {
        request: RequestId,
        activity: Arc<dyn Activity>,
        input: JsonText,
        is_once: bool,
    },
    Finished(Box<RecordedEvent>),
    Waiting,
}

impl EffectPlan {
    fn finished(recorded: RecordedEvent) -> Self {
        Self::Finished(Box::new(recorded))
    }

    fn failed(request: RequestId, failure: Failure) -> Self {
        Self::finished(RecordedEvent::new(request, Outcome::Failed(failure), 0))
    }

    /// Whether the journal must be synced before the effect starts, because the effect must not be repeated after a power cut.
    pub(crate) const fn requires_sync(&self) -> bool {
        match self {
            Self::RunActivity { is_once, .. } => *is_once,
            Self::CallTool(invocation) => invocation.is_once,
            _ => false,
        }
    }
}

/// Plans how to handle an effect, within the limits and approvals of its turn. `claimed_approval` is the id of the approval that the
/// caller has just stored as granted.
pub(crate) fn plan_effect(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    claimed_approval: Option<&str>,
    effect: Effect,
) -> EffectPlan {
    match effect {
        Effect::CallModel { request, model_request, .. } => match check_model_limits(executor, run_state) {
            Some(failure) => EffectPlan::failed(request, failure),
            None => {
                run_state.model_calls += 1;
                EffectPlan::CallModel(request, model_request)
            }
        },
        Effect::CallTool { request, call, .. } => plan_tool(executor, run_state, claimed_approval, request, call),
        Effect::RunActivity { request, name, input, .. } => plan_activity(executor, run_state, request, name, input),
        Effect::RequestApproval { request, node, question, input } => {
            plan_question(executor, run_state, request, node, question, input)
        }
        Effect::Finish(_) => EffectPlan::Waiting,
    }
}

/// Returns the failure if the turn has reached a limit, so no more models may be called.
fn check_model_limits(executor: &EffectExecutor<'_>, run_state: &RunState) -> Option<Failure> {
    let bounds = executor.definition().bounds;
    let usage = run_state.usage();
    if run_state.model_calls >= bounds.model_calls {
        let message = format!("the turn reached its limit of {} model calls", bounds.model_calls);
        return Some(Failure::new("too_many_model_calls", message));
    }
    if usage.input_tokens + usage.output_tokens >= bounds.tokens {
        let message = format!("the turn reached its limit of {} tokens", bounds.tokens);
        return Some(Failure::new("too_many_tokens", message));
    }
    let spent = usage.cost_usd.zip(bounds.cost_usd).filter(|(spent, bound)| spent >= bound);
    spent.map(|(_, bound)| Failure::new("too_expensive", format!("the turn reached its limit of {bound} US dollars")))
}

fn plan_tool(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    claimed_approval: Option<&str>,
    request: RequestId,
    call: ToolCall,
) -> EffectPlan {
    let refuse = |call: ToolCall, text: &str| EffectPlan::finished(refused_call(request, call, text, false));
    let Some(tool) = executor.tool(&call.name) else {
        let names: Vec<&str> = executor.tools.iter().map(|tool| tool.spec().name()).collect();
        return refuse(call, &format!("unknown tool; available tools: {}", names.join(", ")));
    };
    let bound = executor.definition().bounds.tool_calls;
    if run_state.tool_calls_started >= bound {
        let text =
            format!("not called: the turn reached its limit of {bound} tool calls; answer with the results so far");
        return refuse(call, &text);
    }
    run_state.tool_calls_started += 1;
    let Some(mut arguments) = parse_arguments(&**tool, &call.arguments) else {
        return refuse(call, "invalid arguments: not a JSON object");
    };
    let mut approval = run_state.approval(request).cloned();
    if let Some(changed) = approval.as_ref().and_then(|approval| approval.changed.as_ref())
        && let Ok(changed) = changed.read()
    {
        arguments = changed;
    }
    let call = ToolCall { arguments: JsonText::from(&Value::Object(arguments.clone())), ..call };
    let effect = tool.effect(&arguments);
    let is_once = effect == ToolEffect::Allowed;
    if approval.is_none()
        && let ToolEffect::HasSideEffects { preview } = effect
    {
        if run_state.approvals.len() + run_state.requested.len() >= MAX_APPROVALS {
            let text = format!("not done: the turn reached its limit of {MAX_APPROVALS} approvals");
            return refuse(call, &text);
        }
        let tool = call.name.clone();
        let new = new_approval(executor, request, call.id.clone(), tool, call.arguments.clone(), preview);
        run_state.requested.push(new);
        return EffectPlan::Waiting;
    }
    let Some(approval) = approval.take() else {
        if is_once && run_state.record.started_once.contains(&request.0) {
            return EffectPlan::finished(refused_call(request, call, OUTCOME_UNKNOWN, true));
        }
        if is_once {
            run_state.record.started_once.push(request.0);
        }
        let (tool, approval) = (Arc::clone(tool), None);
        return EffectPlan::CallTool(Box::new(ToolInvocation { request, call, arguments, tool, approval, is_once }));
    };
    match approval.state {
        ApprovalState::Pending => EffectPlan::Waiting,
        ApprovalState::Claimed if claimed_approval == Some(approval.id.as_str()) => {
            let (tool, approval) = (Arc::clone(tool), Some(approval.id));
            let is_once = false;
            EffectPlan::CallTool(Box::new(ToolInvocation { request, call, arguments, tool, approval, is_once }))
        }
        ApprovalState::Claimed => {
            run_state.set_approval(request, ApprovalState::OutcomeUnknown);
            EffectPlan::finished(refused_call(request, call, OUTCOME_UNKNOWN, true))
        }
        state => refuse(call, &state.refusal_text(approval.reason.as_deref())),
    }
}

fn plan_activity(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    request: RequestId,
    name: &'static str,
    input: JsonText,
) -> EffectPlan {
    let Some(activity) = executor.definition().activities.get(name) else {
        let text = format!("unknown activity {name}");
        return EffectPlan::failed(request, Failure::new("unknown_activity", text));
    };
    let is_once = activity.retry_policy() == RetryPolicy::Once;
    if is_once && run_state.record.started_once.contains(&request.0) {
        let text = format!("outcome of activity {name} unknown: the process ended while it was running");
        return EffectPlan::failed(request, Failure::new("outcome_unknown", text));
    }
    if is_once {
        run_state.record.started_once.push(request.0);
    }
    EffectPlan::RunActivity { request, activity: Arc::clone(activity), input, is_once }
}

fn plan_question(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    request: RequestId,
    node: &'static str,
    question: String,
    input: JsonText,
) -> EffectPlan {
    let Some(approval) = run_state.approval(request).cloned() else {
        let new = new_approval(executor, request, node.to_owned(), node.to_owned(), input, question);
        run_state.requested.push(Approval { is_question: true, ..new });
        return EffectPlan::Waiting;
    };
    let approved = match approval.state {
        ApprovalState::Pending => return EffectPlan::Waiting,
        // Passing a decision to the graph has no side effects, so it may be repeated.
        ApprovalState::Claimed => true,
        _ => false,
    };
    if approved {
        run_state.set_approval(request, ApprovalState::Done);
    }
    let Approval { by, reason, changed, .. } = approval;
    EffectPlan::finished(RecordedEvent::new(request, Outcome::Decision(Decision { approved, by, reason, changed }), 0))
}

fn new_approval(
    executor: &EffectExecutor<'_>,
    request: RequestId,
    call_id: String,
    tool: String,
    arguments: JsonText,
    preview: String,
) -> Approval {
    let now = executor.now();
    let expires_after = executor.definition().approvals.expires_after;
    Approval {
        id: executor.memory.generate_message_id().to_string(),
        turn: executor.turn.clone(),
        request: request.0,
        call_id,
        tool,
        is_question: false,
        arguments,
        preview,
        requested_at: now,
        expires_at: now.plus_ms(i64::try_from(expires_after.as_millis()).unwrap_or(i64::MAX)),
        state: ApprovalState::Pending,
        by: None,
        decided_at: None,
        reason: None,
        changed: None,
    }
}
