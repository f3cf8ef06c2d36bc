//! Posts answers and approval requests.

use serde_json::{Value, json};
use threadkeep::agent::ApprovalState;
use threadkeep::{Turn, TurnStatus};
use threadkeep_service::Service;

use crate::answer::{Answer, is_post};
use crate::api::Bot;
use crate::events::{APPROVE, DENY};
use crate::inbox::PostedApproval;
use crate::markup::to_slack;
use crate::worker::{WorkError, Worker};

/// The maximum length of a section block's text, in characters.
const MAX_SECTION: usize = 2_900;

impl Worker {
    /// Posts the answer of a turn, or one message per approval that it waits for. After a crash, `since` is the timestamp of the
    /// request: messages that were posted since then are not posted again.
    pub(crate) async fn publish(
        &self,
        service: &Service,
        answer: &mut Answer<'_>,
        requester: &str,
        turn: &Turn,
        since: Option<&str>,
    ) -> Result<(), WorkError> {
        answer.set_turn(&turn.turn);
        let posted = match since {
            Some(since) => self.posted(answer, since).await?,
            None => Vec::new(),
        };
        if since.is_some() {
            answer.find_posted_parts(&posted);
        }
        if turn.status == TurnStatus::WaitingForApproval {
            return self.post_approvals(service, answer, requester, turn, &posted).await;
        }
        self.finish(answer, &turn.reply).await
    }

    async fn post_approvals(
        &self,
        service: &Service,
        answer: &mut Answer<'_>,
        requester: &str,
        turn: &Turn,
        posted: &[Value],
    ) -> Result<(), WorkError> {
        let inbox = self.inbox(service.memory(), &answer.place().team).await?;
        let agent = self.agent(service)?;
        // The approval request replaces the text that the model wrote before it.
        self.remove_posts(answer, 1).await?;
        let pending = turn.approvals.iter().filter(|approval| approval.state == ApprovalState::Pending);
        for approval in pending {
            let text = to_slack(&agent.assistant().approval_reply(&[&approval.preview]));
            let blocks = Some(buttons(&text, &approval.id));
            let known = posted.iter().find(|message| is_post(message, &turn.turn, &approval.id));
            let ts = match known.and_then(|message| message["ts"].as_str()) {
                Some(ts) => ts.to_owned(),
                None => match answer.take_post() {
                    Some(post) => {
                        let metadata = answer.metadata(&approval.id);
                        self.replace_post(answer, &post.ts, &text, blocks, metadata).await?;
                        post.ts
                    }
                    None => self.post(answer, &approval.id, &text, blocks).await?,
                },
            };
            let post = PostedApproval {
                thread: turn.thread,
                thread_ts: answer.place().thread_ts.clone(),
                turn: turn.turn.clone(),
                approval: approval.id.clone(),
                requester: requester.to_owned(),
                text,
            };
            inbox.put_post(&answer.place().channel, &ts, &post).await?;
        }
        self.remove_posts(answer, 0).await
    }

    /// Returns the messages of the channel or thread since a timestamp, with their metadata.
    async fn posted(&self, answer: &Answer<'_>, since: &str) -> Result<Vec<Value>, WorkError> {
        let place = answer.place();
        let mut arguments =
            json!({ "channel": place.channel, "include_all_metadata": true, "limit": 200, "oldest": since });
        let method = match &place.thread_ts {
            Some(thread_ts) => {
                arguments["ts"] = json!(thread_ts);
                "conversations.replies"
            }
            None => "conversations.history",
        };
        let mut page = self.api.call(answer.bot(), method, &arguments).await?;
        match page["messages"].take() {
            Value::Array(messages) => Ok(messages),
            _ => Ok(Vec::new()),
        }
    }

    /// Replaces the buttons of an approval request with the decision.
    pub(crate) async fn close_post(
        &self,
        bot: &Bot,
        channel: &str,
        ts: &str,
        text: &str,
        note: &str,
    ) -> Result<(), WorkError> {
        let text = format!("{text}\n{note}");
        let section: String = text.chars().take(MAX_SECTION).collect();
        let blocks = json!([{ "type": "section", "text": { "type": "mrkdwn", "text": section } }]);
        let arguments = json!({ "channel": channel, "ts": ts, "text": text, "blocks": blocks });
        self.api.call(bot, "chat.update", &arguments).await?;
        Ok(())
    }
}

/// Returns the blocks of an approval request: its text and two buttons.
fn buttons(text: &str, approval: &str) -> Value {
    let section: String = text.chars().take(MAX_SECTION).collect();
    let button = |label: &str, action: &str, style: &str| {
        json!({
            "type": "button", "text": { "type": "plain_text", "text": label }, "action_id": action, "value": approval, "style": style,
        })
    };
    json!([
        { "type": "section", "text": { "type": "mrkdwn", "text": section } },
        { "type": "actions", "elements": [button("Approve", APPROVE, "primary"), button("Deny", DENY, "danger")] },
    ])
}
