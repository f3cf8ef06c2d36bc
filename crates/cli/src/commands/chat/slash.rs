//! What can be asked of the program itself in a chat.

use anyhow::Result;
use threadkeep::Verdict;

use super::{Chat, Next};
use crate::commands::context::Explanation;
use crate::commands::trace;
use crate::instants;
use crate::table::{Side, Table, cut, number};
use crate::thread_name;

const HELP: &str = "/context          what the model saw in the last turn, and why
/trace            what happened in it: tools, sources, tokens
/threads          the conversations that changed last
/thread THREAD    go on in another one
/clear            begin a new one; this one is kept
/approve          let the assistant do what it asks leave for
/deny [REASON]    do not
/quit             end; Ctrl-D does, too";
/// Threads that are listed.
const THREADS: usize = 10;
const TITLE: usize = 60;

impl Chat<'_> {
    /// Does what follows a slash.
    pub(super) async fn command(&mut self, command: &str) -> Result<Next> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("quit" | "exit" | "q", _) => return Ok(Next::Quit),
            ("help" | "?", _) => self.app.output.line(HELP)?,
            ("context", _) => self.context().await?,
            ("trace", _) => match &self.last {
                Some(turn) => trace::print(&self.app.output, turn)?,
                None => self.app.output.note("nothing was asked yet"),
            },
            ("threads", _) => self.threads().await?,
            ("thread", "") => self.app.output.note("/thread THREAD: its id, the beginning of it, or its key"),
            ("thread", name) => {
                let found = thread_name::get(&self.session.memory, &self.session.scope, name).await?;
                (self.thread, self.last) = (Some(found.id), None);
                self.app.output.note(format_args!("in {}", thread_name::title(&found)));
                self.show_open().await?;
            }
            ("clear" | "new", _) => {
                (self.thread, self.last) = (None, None);
                self.app.output.note("a new conversation; /threads lists the others");
            }
            ("approve", _) => self.decide(Verdict::Approve).await?,
            ("deny", reason) => {
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                self.decide(Verdict::Deny { reason }).await?;
            }
            (name, _) => {
                let name = cut(&crate::output::printable_line(name), 20);
                self.app.output.note(format_args!("there is no /{name}; /help lists what there is"));
            }
        }
        Ok(Next::Go)
    }

    async fn context(&self) -> Result<()> {
        let Some(turn) = &self.last else {
            self.app.output.note("nothing was asked yet");
            return Ok(());
        };
        let (memory, scope) = (&self.session.memory, &self.session.scope);
        let Some(report) = memory.context_report(scope, turn.thread, &turn.turn).await? else {
            self.app.output.note("no explanation is kept of the last turn: no model was asked in it");
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
        let columns = [("", Side::Left), ("thread", Side::Left), ("title", Side::Left), ("messages", Side::Right)];
        let mut table = Table::new(columns.into_iter().chain([("updated (UTC)", Side::Left)]));
        for thread in threads.iter().take(THREADS) {
            table.add_row([
                if self.thread == Some(thread.id) { "*" } else { "" }.to_owned(),
                thread_name::short(thread.id),
                cut(&thread_name::title(thread), TITLE),
                number(thread.message_count),
                instants::minute(thread.updated_at),
            ]);
        }
        self.app.output.line(table.text())
    }
}
