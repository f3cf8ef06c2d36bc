//! What becomes of an effect: work, a known outcome, or waiting for a person.

use std::sync::Arc;

use threadkeep_core::{JsonText, ToolCall, ToolEffect, Value};
use threadkeep_graph::{Decision, Effect, Failure, ModelAsk, Outcome, RequestId};

use crate::ledger::Ledger;
use crate::record::Recorded;
use crate::workshop::{Admitted, Workshop, arguments, refused};
use crate::{Activity, Approval, ApprovalState, Repetition};

/// Approvals that one turn asks for at most.
const APPROVALS: usize = 16;

/// What is to be done about an effect.
pub(crate) enum Plan {
    Ask(RequestId, Box<ModelAsk>),
    Call(Box<Admitted>),
    /// Work that is begun once only must be written down before it is.
    Run {
        request: RequestId,
        activity: Arc<dyn Activity>,
        input: JsonText,
        is_once: bool,
    },
    Known(Box<Recorded>),
    Waits,
}

impl Plan {
    fn known(recorded: Recorded) -> Self {
        Self::Known(Box::new(recorded))
    }

    fn failed(request: RequestId, failure: Failure) -> Self {
        Self::known(Recorded::new(request, Outcome::Failed(failure), 0))
    }

    pub(crate) const fn is_urgent(&self) -> bool {
        matches!(self, Self::Run { is_once: true, .. })
    }
}

/// Plans with the bounds and the approvals of a turn. `claimed` is the approval that was given just now.
pub(crate) fn plan(workshop: &Workshop<'_>, ledger: &mut Ledger, claimed: Option<&str>, effect: Effect) -> Plan {
    match effect {
        Effect::CallModel { request, ask, .. } => match over_bounds(workshop, ledger) {
            Some(failure) => Plan::failed(request, failure),
            None => {
                ledger.model_calls += 1;
                Plan::Ask(request, ask)
            }
        },
        Effect::CallTool { request, call, .. } => plan_tool(workshop, ledger, claimed, request, call),
        Effect::RunActivity { request, name, input, .. } => plan_activity(workshop, ledger, request, name, input),
        Effect::AskPerson { request, node, question, input } => {
            plan_question(workshop, ledger, request, node, question, input)
        }
        Effect::Finish(_) => Plan::Waits,
    }
}

/// Why no further model may be asked.
fn over_bounds(workshop: &Workshop<'_>, ledger: &Ledger) -> Option<Failure> {
    let bounds = workshop.definition().bounds;
    let usage = ledger.usage();
    if ledger.model_calls >= bounds.model_calls {
        return Some(Failure::new(
            "too_many_model_calls",
            format!("the turn asked models {} times", bounds.model_calls),
        ));
    }
    if usage.input_tokens + usage.output_tokens >= bounds.tokens {
        return Some(Failure::new("too_many_tokens", format!("the turn used up {} tokens", bounds.tokens)));
    }
    let spent = usage.cost_usd.zip(bounds.cost_usd).filter(|(spent, bound)| spent >= bound);
    spent.map(|(_, bound)| Failure::new("too_expensive", format!("the turn used up {bound} US dollars")))
}

fn plan_tool(
    workshop: &Workshop<'_>,
    ledger: &mut Ledger,
    claimed: Option<&str>,
    request: RequestId,
    call: ToolCall,
) -> Plan {
    let refuse = |call: ToolCall, text: &str| Plan::known(refused(request, call, text, false));
    let Some(tool) = workshop.tool(&call.name) else {
        let names: Vec<&str> = workshop.tools.iter().map(|tool| tool.spec().name()).collect();
        return refuse(call, &format!("there is no such tool here; there are: {}", names.join(", ")));
    };
    let bound = workshop.definition().bounds.tool_calls;
    if ledger.tools_begun >= bound {
        return refuse(call, &format!("not called: the turn called {bound} tools already; answer with what there is"));
    }
    ledger.tools_begun += 1;
    let Some(mut arguments) = arguments(&**tool, &call.arguments) else {
        return refuse(call, "invalid arguments: not a JSON object");
    };
    let mut approval = ledger.approval(request).cloned();
    if let Some(changed) = approval.as_ref().and_then(|approval| approval.changed.as_ref())
        && let Ok(changed) = changed.read()
    {
        arguments = changed;
    }
    let call = ToolCall { arguments: JsonText::from(&Value::Object(arguments.clone())), ..call };
    if approval.is_none()
        && let ToolEffect::ChangesWorld { preview } = tool.effect(&arguments)
    {
        if ledger.approvals.len() + ledger.requested.len() >= APPROVALS {
            return refuse(call, &format!("not done: the turn asked for {APPROVALS} approvals already"));
        }
        let tool = call.name.clone();
        let new = new_approval(workshop, request, call.id.clone(), tool, call.arguments.clone(), preview);
        ledger.requested.push(new);
        return Plan::Waits;
    }
    let Some(approval) = approval.take() else {
        return Plan::Call(Box::new(Admitted { request, call, arguments, tool: Arc::clone(tool), approval: None }));
    };
    match approval.state {
        ApprovalState::Pending => Plan::Waits,
        ApprovalState::Claimed if claimed == Some(approval.id.as_str()) => {
            let (tool, approval) = (Arc::clone(tool), Some(approval.id));
            Plan::Call(Box::new(Admitted { request, call, arguments, tool, approval }))
        }
        ApprovalState::Claimed => {
            ledger.set_approval(request, ApprovalState::OutcomeUnknown);
            let text = "it is unknown whether this was done: the program ended meanwhile. It is not done again.";
            Plan::known(refused(request, call, text, true))
        }
        state => refuse(call, &state.not_made(approval.reason.as_deref())),
    }
}

fn plan_activity(
    workshop: &Workshop<'_>,
    ledger: &mut Ledger,
    request: RequestId,
    name: &'static str,
    input: JsonText,
) -> Plan {
    let Some(activity) = workshop.definition().activities.get(name) else {
        let text = format!("the assistant has no activity {name}");
        return Plan::failed(request, Failure::new("unknown_activity", text));
    };
    let is_once = activity.repetition() == Repetition::Once;
    if is_once && ledger.record.begun.contains(&request.0) {
        let text = format!("it is unknown whether {name} was done: the program ended meanwhile");
        return Plan::failed(request, Failure::new("outcome_unknown", text));
    }
    if is_once {
        ledger.record.begun.push(request.0);
    }
    Plan::Run { request, activity: Arc::clone(activity), input, is_once }
}

fn plan_question(
    workshop: &Workshop<'_>,
    ledger: &mut Ledger,
    request: RequestId,
    node: &'static str,
    question: String,
    input: JsonText,
) -> Plan {
    let Some(approval) = ledger.approval(request).cloned() else {
        let new = new_approval(workshop, request, node.to_owned(), node.to_owned(), input, question);
        ledger.requested.push(Approval { is_question: true, ..new });
        return Plan::Waits;
    };
    let approved = match approval.state {
        ApprovalState::Pending => return Plan::Waits,
        // Hearing a decision changes nothing, so it may be heard again.
        ApprovalState::Claimed => true,
        _ => false,
    };
    if approved {
        ledger.set_approval(request, ApprovalState::Done);
    }
    let Approval { by, reason, changed, .. } = approval;
    Plan::known(Recorded::new(request, Outcome::Decision(Decision { approved, by, reason, changed }), 0))
}

fn new_approval(
    workshop: &Workshop<'_>,
    request: RequestId,
    call_id: String,
    tool: String,
    arguments: JsonText,
    preview: String,
) -> Approval {
    let now = workshop.now();
    let lasts = workshop.definition().approvals.expires_after;
    Approval {
        id: workshop.memory.mint_message_id().to_string(),
        turn: workshop.turn.clone(),
        request: request.0,
        call_id,
        tool,
        is_question: false,
        arguments,
        preview,
        requested_at: now,
        expires_at: now.plus_ms(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX)),
        state: ApprovalState::Pending,
        by: None,
        decided_at: None,
        reason: None,
        changed: None,
    }
}
