//! Posts answers and approval requests.

use serde_json::{Value, json};
use threadkeep::agent::ApprovalState;
use threadkeep::{Turn, TurnStatus};
use threadkeep_service::Service;

use crate::api::Bot;
use crate::events::{APPROVE, DENY, Place};
use crate::inbox::PostedApproval;
use crate::markup::{split, to_slack};
use crate::worker::{WorkError, Worker};

/// The maximum length of a message, in characters. Slack displays about 4,000.
const MAX_MESSAGE: usize = 3_900;
/// The maximum length of a section block's text, in characters.
const MAX_SECTION: usize = 2_900;
/// The maximum number of messages per answer.
const MAX_PARTS: usize = 10;
/// The event type in the metadata of posted messages.
const EVENT_TYPE: &str = "threadkeep_turn";

impl Worker {
    /// Posts the answer of a turn, or one message per approval that it waits for. After a crash, skips messages that were already posted.
    pub(crate) async fn publish(
        &self,
        service: &Service,
        place: &Place,
        requester: &str,
        turn: &Turn,
        is_recovered: bool,
    ) -> Result<(), WorkError> {
        let bot = self.bot(&place.team).await?;
        let posted = if is_recovered { self.posted(&bot, place, &turn.turn).await? } else { Vec::new() };
        if turn.status == TurnStatus::WaitingForApproval {
            return self.post_approvals(service, &bot, place, requester, turn, &posted).await;
        }
        let parts = split(&to_slack(&turn.reply), MAX_MESSAGE);
        for (number, part) in parts.iter().take(MAX_PARTS).enumerate() {
            let id = format!("{} {number} {}", turn.turn, turn.stored.len());
            if posted.iter().any(|(known, _)| *known == id) {
                continue;
            }
            self.post(&bot, place, &id, &turn.turn, part, None).await?;
        }
        Ok(())
    }

    async fn post_approvals(
        &self,
        service: &Service,
        bot: &Bot,
        place: &Place,
        requester: &str,
        turn: &Turn,
        posted: &[(String, String)],
    ) -> Result<(), WorkError> {
        let inbox = self.inbox(service.memory(), &place.team).await?;
        let agent = self.agent(service)?;
        let pending = turn.approvals.iter().filter(|approval| approval.state == ApprovalState::Pending);
        for approval in pending {
            let text = to_slack(&agent.assistant().approval_reply(&[&approval.preview]));
            let known = posted.iter().find(|(id, _)| *id == approval.id).map(|(_, ts)| ts.clone());
            let ts = match known {
                Some(ts) => ts,
                None => {
                    self.post(bot, place, &approval.id, &turn.turn, &text, Some(buttons(&text, &approval.id))).await?
                }
            };
            let post = PostedApproval {
                thread: turn.thread,
                thread_ts: place.thread_ts.clone(),
                turn: turn.turn.clone(),
                approval: approval.id.clone(),
                requester: requester.to_owned(),
                text,
            };
            inbox.put_post(&place.channel, &ts, &post).await?;
        }
        Ok(())
    }

    /// Posts a message with its id as metadata. Returns its timestamp.
    async fn post(
        &self,
        bot: &Bot,
        place: &Place,
        id: &str,
        turn: &str,
        text: &str,
        blocks: Option<Value>,
    ) -> Result<String, WorkError> {
        let mut arguments = json!({
            "channel": place.channel, "text": text, "unfurl_links": false,
            "metadata": { "event_type": EVENT_TYPE, "event_payload": { "turn": turn, "id": id } },
        });
        if let Some(thread_ts) = &place.thread_ts {
            arguments["thread_ts"] = json!(thread_ts);
        }
        if let Some(blocks) = blocks {
            arguments["blocks"] = blocks;
        }
        let answer = self.api.call(bot, "chat.postMessage", &arguments).await?;
        Ok(answer["ts"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the ids and timestamps of the messages that a turn has already posted.
    async fn posted(&self, bot: &Bot, place: &Place, turn: &str) -> Result<Vec<(String, String)>, WorkError> {
        let (method, mut arguments) =
            ("conversations.history", json!({ "channel": place.channel, "include_all_metadata": true, "limit": 200 }));
        let method = match &place.thread_ts {
            Some(thread_ts) => {
                arguments["ts"] = json!(thread_ts);
                "conversations.replies"
            }
            None => method,
        };
        let answer = self.api.call(bot, method, &arguments).await?;
        let messages = answer["messages"].as_array().into_iter().flatten();
        let own = messages.filter(|message| message["metadata"]["event_payload"]["turn"] == *turn);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(own.map(|message| (text(&message["metadata"]["event_payload"]["id"]), text(&message["ts"]))).collect())
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
