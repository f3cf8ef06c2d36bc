//! Approvals and denials by reactions and buttons.

use serde_json::json;
use threadkeep::Verdict;
use threadkeep::agent::find_approval;
use threadkeep_service::turns::{self, DecisionRequest, TurnTask};
use threadkeep_service::{AuditAction, Caller, Error, RequestIdentity, Sender, Service};

use crate::answer::Answer;
use crate::api::Bot;
use crate::events::{Job, Place};
use crate::inbox::{Inbox, PostedApproval};
use crate::worker::{WorkError, Worker};

/// The decision of a user.
#[derive(Clone, Copy, Debug)]
struct Decision<'a> {
    user: &'a str,
    approves: bool,
    is_recovered: bool,
}

impl Worker {
    /// Applies a decision if the user may decide; otherwise ignores it.
    pub(crate) async fn decide(&self, service: &Service, job: &Job, is_recovered: bool) -> Result<(), WorkError> {
        let Job::Decide { team, channel, ts, user, user_team, approves } = job else { return Ok(()) };
        let inbox = self.inbox(service.memory(), team).await?;
        let Some(post) = inbox.find_post(channel, ts).await? else { return Ok(()) };
        let bot = self.bot(team).await?;
        if !self.may_decide(&bot, &post, user, user_team.as_deref()).await? {
            tracing::info!("ignored a decision on an approval: the user may not decide");
            return Ok(());
        }
        let place = Place { team: team.clone(), channel: channel.clone(), thread_ts: post.thread_ts.clone() };
        let mut answer = Answer::new(&bot, &place, &post.approval);
        let decision = Decision { user, approves: *approves, is_recovered };
        let result = self.resume(service, &inbox, &post, decision, &mut answer).await?;
        match result {
            Ok(turn) => {
                let (mark, word) = if *approves { ("✅", "Approved") } else { ("❌", "Denied") };
                self.close_post(&bot, channel, ts, &post.text, &format!("{mark} {word} by <@{user}>")).await?;
                self.publish(service, &mut answer, &post.requester, &turn, is_recovered.then_some(ts)).await
            }
            Err(error) if is_final(&error) => {
                // The buttons of a closed approval are removed.
                let approval = find_approval(service.memory(), inbox.scope(), post.thread, &post.approval).await;
                if let Ok(Some(approval)) = approval
                    && approval.by.is_none()
                    && !approval.is_open(service.memory().now())
                {
                    self.close_post(&bot, channel, ts, &post.text, "This request is no longer valid.").await?;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a user may decide: a member of the same workspace, not the bot, and not the requester if so configured.
    async fn may_decide(
        &self,
        bot: &Bot,
        post: &PostedApproval,
        user: &str,
        user_team: Option<&str>,
    ) -> Result<bool, WorkError> {
        if user == bot.user || (!self.options().requester_may_approve && user == post.requester) {
            return Ok(false);
        }
        let team = match user_team {
            Some(team) => team.to_owned(),
            None => {
                let answer = self.api.call(bot, "users.info", &json!({ "user": user })).await?;
                if answer["user"]["is_bot"] == true {
                    return Ok(false);
                }
                answer["user"]["team_id"].as_str().unwrap_or_default().to_owned()
            }
        };
        Ok(team == bot.team)
    }

    /// Decides and resumes the turn. The decision and its outcome are written to the audit log.
    async fn resume(
        &self,
        service: &Service,
        inbox: &Inbox,
        post: &PostedApproval,
        decision: Decision<'_>,
        answer: &mut Answer<'_>,
    ) -> Result<Result<threadkeep::Turn, Error>, WorkError> {
        let Decision { user, approves, is_recovered } = decision;
        let agent = self.agent(service)?;
        let verdict = if approves { Verdict::Approve } else { Verdict::Deny { reason: None } };
        let request = DecisionRequest {
            service: service.clone(),
            agent,
            scope: inbox.scope().clone(),
            thread: post.thread,
            approval: post.approval.clone(),
            turn: post.turn.clone(),
            verdict,
            by: user.to_owned(),
            identity: RequestIdentity::new("slack", None, &post.approval, u64::from(is_recovered)),
        };
        let sender = Sender { name: format!("slack {user}"), scope: inbox.scope().clone(), roles: Vec::new() };
        let act = if approves { "approve in Slack" } else { "deny in Slack" };
        let action = AuditAction { act: act.to_owned(), target: Some(post.approval.clone()), request_id: None };
        let decided = async {
            let updates = turns::start(service.delay_shutdown(), TurnTask::Decide(request));
            self.follow(updates, answer).await
        };
        let outcome = |result: &Result<Box<turns::TurnResult>, Error>| match result {
            Ok(result) => format!("{:?}", result.turn.status).to_lowercase(),
            Err(error) => error.code.to_owned(),
        };
        let result = service.audited(&Caller::from(sender), action, decided, outcome).await?;
        Ok(result.map(|result| result.turn))
    }
}

/// Whether a retry would fail in the same way.
fn is_final(error: &Error) -> bool {
    use threadkeep_service::ErrorKind;
    !matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Internal)
}
