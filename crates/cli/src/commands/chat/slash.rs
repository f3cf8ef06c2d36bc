//! Runs the slash commands of a chat.

use anyhow::Result;
use threadkeep::Verdict;

use super::{Chat, Next};
use crate::commands::context::Explanation;
use crate::commands::trace;
use crate::instants;
use crate::table::{Align, Table, cut, number};
use crate::thread_name;

const HELP: &str = "/context          show the context that the model received in the last turn, and why
/trace            show the details of the last turn: tools, sources, tokens
/threads          list the most recently changed conversations
/thread THREAD    switch to another conversation
/clear            start a new conversation; the current one is kept
/approve          allow the call that waits for approval
/deny [REASON]    deny it
/quit             quit, as does Ctrl-D";
/// The maximum number of listed threads.
const MAX_THREADS: usize = 10;
const TITLE_COLUMNS: usize = 60;

impl Chat<'_> {
    /// Runs a command, given without its slash.
    pub(super) async fn command(&mut self, command: &str) -> Result<Next> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("quit" | "exit" | "q", _) => return Ok(Next::Quit),
            ("help" | "?", _) => self.app.output.line(HELP)?,
            ("context", _) => self.context().await?,
            ("trace", _) => match &self.last {
                Some(turn) => trace::print(&self.app.output, turn)?,
                None => self.app.output.note("no question asked yet"),
            },
            ("threads", _) => self.threads().await?,
            ("thread", "") => self.app.output.note("usage: /thread THREAD (its id, a prefix of the id, or its key)"),
            ("thread", name) => {
                let found = thread_name::get(&self.session.memory, &self.session.scope, name).await?;
                (self.thread, self.last) = (Some(found.id), None);
                self.app.output.note(format_args!("switched to {}", thread_name::title(&found)));
                self.show_open_approvals().await?;
            }
            ("clear" | "new", _) => {
                (self.thread, self.last) = (None, None);
                self.app.output.note("started a new conversation; /threads lists the others");
            }
            ("approve", _) => self.decide(Verdict::Approve).await?,
            ("deny", reason) => {
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                self.decide(Verdict::Deny { reason }).await?;
            }
            (name, _) => {
                let name = cut(&crate::output::printable_line(name), 20);
                self.app.output.note(format_args!("unknown command /{name}; /help lists the commands"));
            }
        }
        Ok(Next::Continue)
    }

    async fn context(&self) -> Result<()> {
        let Some(turn) = &self.last else {
            self.app.output.note("no question asked yet");
            return Ok(());
        };
        let (memory, scope) = (&self.session.memory, &self.session.scope);
        let Some(report) = memory.context_report(scope, turn.thread, &turn.turn).await? else {
            self.app.output.note("the last turn has no explanation: it did not call a model");
            return Ok(());
        };
        let thread = memory.get_thread(scope, turn.thread).await?;
        let explanation = Explanation::read(memory, scope, &thread, &report).await?;
        explanation.print(&self.app.output, "the last turn")
    }

    async fn threads(&self) -> Result<()> {
        let mut threads = self.session.threads().await?;
        threads.retain(|thread| !thread.is_ephemeral());
        if threads.is_empty() {
            self.app.output.note("no conversations yet");
            return Ok(());
        }
        let columns = [("", Align::Left), ("thread", Align::Left), ("title", Align::Left), ("messages", Align::Right)];
        let mut table = Table::new(columns.into_iter().chain([("updated", Align::Left)]));
        for thread in threads.iter().take(MAX_THREADS) {
            table.add_row([
                if self.thread == Some(thread.id) { "*" } else { "" }.to_owned(),
                thread_name::short(thread.id),
                cut(&thread_name::title(thread), TITLE_COLUMNS),
                number(thread.message_count),
                instants::minute(thread.updated_at),
            ]);
        }
        self.app.output.line(table.text())
    }
}
