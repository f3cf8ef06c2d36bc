//! What the view shows and how it reacts: a pure state machine. Events go in; the effects to carry out come out.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use threadkeep::ThreadId;
use threadkeep::core::limits::PAGE;
use threadkeep::core::query::TextQuery;

use super::areas::{Areas, is_wide};
use super::input::Input;
use super::list::ListPosition;
use super::reader::{Page, Place, Reader, Target};
use super::rows::{Found, HitRow, ThreadInfo, ThreadRow};
use crate::table::counted;

/// The number of hits of a search. Scrolling to the end requests more.
pub(super) const HITS: usize = 50;
/// The number of remaining hits at which more are requested.
const MARGIN: usize = 10;
/// The rows of a hit: a heading and an excerpt.
pub(super) const HIT_ROWS: usize = 2;
/// The maximum size of text for the clipboard. Terminals ignore longer sequences, of 100,000 bytes in base64.
const CLIPBOARD_BYTES: usize = 74_000;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    Key(KeyEvent),
    Paste(String),
    Resized {
        columns: u16,
        rows: u16,
    },
    Elapsed(Timer),
    ThreadsListed(Vec<ThreadRow>),
    SearchFinished {
        generation: u64,
        found: Found,
    },
    PageRead {
        generation: u64,
        place: Place,
        page: Page,
    },
    /// The text to copy was read.
    TextRead {
        text: String,
        name: String,
    },
    Exported {
        file: PathBuf,
        messages: u64,
        unreadable: u64,
    },
    Failed {
        task: Task,
        message: String,
    },
}

/// A delay after which a task starts, unless its number is outdated by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Search(u64),
    Preview(u64),
}

/// A task that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    List,
    Search(u64),
    Read(u64),
    Copy,
    Export,
}

/// What the program has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Start(Timer),
    ListThreads,
    /// Replaces the running search.
    Search {
        generation: u64,
        query: String,
        limit: usize,
    },
    /// Replaces the running read. The text of the message `whole` is not cut.
    Read {
        generation: u64,
        thread: ThreadId,
        place: Place,
        whole: Option<u64>,
    },
    ReadText {
        thread: ThreadId,
        seq: u64,
    },
    Export {
        thread: ThreadId,
        file: PathBuf,
    },
    SetClipboard(String),
    Quit,
}

/// The part that receives keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    Query,
    List,
    Reader,
}

/// A line about the last action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// The question for the file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportPrompt {
    pub(super) thread: ThreadId,
    pub(super) file: Input,
}

/// Everything that the screen shows.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) columns: u16,
    pub(super) rows: u16,
    pub(super) focus: Focus,
    pub(super) query: Input,
    /// `None` until the threads are listed.
    pub(super) threads: Option<Vec<ThreadRow>>,
    threads_position: ListPosition,
    /// The results of the last search; `None` without a query.
    pub(super) found: Option<Found>,
    hits_position: ListPosition,
    pub(super) is_searching: bool,
    pub(super) reader: Option<Reader>,
    pub(super) note: Option<Note>,
    pub(super) export_prompt: Option<ExportPrompt>,
    pub(super) is_help_open: bool,
    /// Whether the query is still being typed, so its last word may be incomplete.
    is_typing: bool,
    search_generation: u64,
    read_generation: u64,
}

/// The selected item of the list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Selected<'a> {
    Thread(&'a ThreadRow),
    Hit(&'a Found, &'a HitRow),
}

impl Selected<'_> {
    fn thread(&self) -> &ThreadInfo {
        match self {
            Self::Thread(row) => &row.thread,
            Self::Hit(_, hit) => &hit.thread,
        }
    }
}

impl State {
    /// Creates the state, and returns the first effects.
    pub(super) fn new(columns: u16, rows: u16, query: &str) -> (Self, Vec<Effect>) {
        let mut state = Self {
            columns,
            rows,
            focus: Focus::List,
            query: Input::new(query),
            threads: None,
            threads_position: ListPosition::default(),
            found: None,
            hits_position: ListPosition::default(),
            is_searching: false,
            reader: None,
            note: None,
            export_prompt: None,
            is_help_open: false,
            is_typing: false,
            search_generation: 0,
            read_generation: 0,
        };
        let mut effects = vec![Effect::ListThreads];
        effects.extend(state.search(HITS));
        (state, effects)
    }

    /// Handles an event. Returns what has to be done, in order.
    pub(super) fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Event::Key(key) => self.handle_key(key),
            Event::Paste(text) => self.paste(&text),
            Event::Resized { columns, rows } => {
                (self.columns, self.rows) = (columns, rows);
                self.preview()
            }
            Event::Elapsed(Timer::Search(generation)) if generation == self.search_generation => self.search(HITS),
            Event::Elapsed(Timer::Preview(generation)) if generation == self.read_generation => self.read_selected(),
            Event::Elapsed(_) => Vec::new(),
            Event::ThreadsListed(threads) => {
                self.threads_position.clamp(threads.len());
                self.threads = Some(threads);
                self.preview()
            }
            Event::SearchFinished { generation, found } => self.show_found(generation, found),
            Event::PageRead { generation, place, page } => {
                if let Some(reader) = self.reader.as_mut().filter(|reader| reader.generation == generation) {
                    reader.add(place, page);
                }
                Vec::new()
            }
            Event::TextRead { text, name } => self.copy(text, &name),
            Event::Exported { file, messages, unreadable } => {
                let unreadable = match unreadable {
                    0 => String::new(),
                    count => format!("; {} cannot be read", counted(count, "message")),
                };
                self.inform(format!("exported {} to {}{unreadable}", counted(messages, "message"), file.display()));
                Vec::new()
            }
            Event::Failed { task, message } => {
                self.fail(task, message);
                Vec::new()
            }
        };
        self.fit();
        effects.extend(self.read_more());
        effects.extend(self.search_more());
        effects
    }

    pub(super) fn areas(&self) -> Areas {
        Areas::new(self.columns, self.rows, self.focus == Focus::Reader)
    }

    /// Whether the list shows hits instead of threads.
    pub(super) fn lists_hits(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the position in the list.
    pub(super) fn position(&self) -> ListPosition {
        if self.lists_hits() { self.hits_position } else { self.threads_position }
    }

    /// Returns the selected item of the list.
    pub(super) fn selected(&self) -> Option<Selected<'_>> {
        match &self.found {
            Some(found) => found.hits.get(self.hits_position.selected).map(|hit| Selected::Hit(found, hit)),
            None => self.threads.as_ref()?.get(self.threads_position.selected).map(Selected::Thread),
        }
    }

    fn count(&self) -> usize {
        match &self.found {
            Some(found) => found.hits.len(),
            None => self.threads.as_ref().map_or(0, Vec::len),
        }
    }

    /// Returns the number of items of the list that fit on the screen.
    fn visible_items(&self) -> usize {
        let rows = usize::from(self.areas().list.height);
        if self.lists_hits() { rows / HIT_ROWS } else { rows }
    }

    /// Adapts positions to the sizes of lists and of the screen.
    fn fit(&mut self) {
        let (count, visible, areas) = (self.count(), self.visible_items(), self.areas());
        let position = if self.lists_hits() { &mut self.hits_position } else { &mut self.threads_position };
        if areas.list.area() > 0 {
            position.scroll(count, visible);
        }
        if let Some(reader) = self.reader.as_mut().filter(|_| areas.reader.area() > 0) {
            reader.resize(areas.text_columns(), areas.message_rows());
        }
    }

    fn handle_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'C')) {
            return vec![Effect::Quit];
        }
        self.note = None;
        if self.is_help_open {
            self.is_help_open = false;
            return Vec::new();
        }
        if self.export_prompt.is_some() {
            return self.handle_prompt_key(key);
        }
        match self.focus {
            Focus::Query => self.handle_query_key(key),
            Focus::List => self.handle_list_key(key),
            Focus::Reader => self.handle_reader_key(key),
        }
    }

    fn handle_query_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Enter => {
                self.focus = Focus::List;
                // The last word is complete. Hits among which the user has moved stay.
                self.is_typing = false;
                let is_found = self.found.as_ref().is_some_and(|found| found.query == self.query.text().trim());
                let is_done = !self.is_searching && (is_found || self.hits_position.selected > 0);
                if is_done { Vec::new() } else { self.search(HITS) }
            }
            KeyCode::Esc if self.query.text().is_empty() => {
                self.focus = Focus::List;
                Vec::new()
            }
            KeyCode::Esc => {
                self.query = Input::default();
                self.query_changed()
            }
            KeyCode::Tab => {
                self.focus = Focus::List;
                Vec::new()
            }
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => self.handle_list_key(key),
            _ => {
                let before = self.query.text().to_owned();
                self.query.handle(key);
                if self.query.text() == before { Vec::new() } else { self.query_changed() }
            }
        }
    }

    fn handle_list_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let page = self.visible_items().saturating_sub(1).max(1).cast_signed();
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::PageUp => self.move_by(-page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.move_by(page),
            KeyCode::Home | KeyCode::Char('g') => self.move_by(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.move_by(isize::MAX),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.open(),
            KeyCode::Tab if is_wide(self.columns) => self.open(),
            KeyCode::Esc if !self.query.text().is_empty() => {
                self.query = Input::default();
                self.query_changed()
            }
            KeyCode::Char('c') => self.copy_selected(),
            _ => self.handle_common_key(key),
        }
    }

    fn handle_reader_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(reader) = self.reader.as_mut() else {
            self.focus = Focus::List;
            return Vec::new();
        };
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => reader.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => reader.scroll(1),
            KeyCode::PageUp | KeyCode::Char('b') => reader.scroll_pages(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => reader.scroll_pages(1),
            KeyCode::Char('[') => reader.select(-1),
            KeyCode::Char(']') => reader.select(1),
            KeyCode::Home | KeyCode::Char('g') => return self.read_again(Place::First),
            KeyCode::End | KeyCode::Char('G') => return self.read_again(Place::Last),
            KeyCode::Enter => {
                let Some(seq) = reader.selected_message().map(|row| row.seq) else { return Vec::new() };
                reader.target = reader.target.take().filter(|target| target.seq == seq);
                reader.target.get_or_insert_with(|| Target::new(seq, String::new(), &[]));
                return self.read_again(Place::Around(seq));
            }
            KeyCode::Char('n') => return self.open_neighbour(1),
            KeyCode::Char('p' | 'N') => return self.open_neighbour(-1),
            KeyCode::Char('c') => {
                let thread = reader.thread.id;
                let seq = reader.selected_message().map(|row| row.seq);
                return seq.map(|seq| Effect::ReadText { thread, seq }).into_iter().collect();
            }
            KeyCode::Esc | KeyCode::Left | KeyCode::Char('h') | KeyCode::Backspace | KeyCode::Tab => {
                self.focus = Focus::List;
            }
            _ => return self.handle_common_key(key),
        }
        Vec::new()
    }

    fn handle_common_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Char('q') => return vec![Effect::Quit],
            KeyCode::Char('/') => self.focus = Focus::Query,
            KeyCode::Char('?') | KeyCode::F(1) => self.is_help_open = true,
            KeyCode::Char('e') => self.ask_for_file(),
            KeyCode::Char('r') | KeyCode::F(5) => {
                let mut effects = vec![Effect::ListThreads];
                effects.extend(self.search(HITS));
                let shown = self.reader.as_ref().filter(|_| self.focus == Focus::Reader);
                if let Some(seq) = shown.and_then(Reader::selected_message).map(|row| row.seq) {
                    effects.extend(self.read_again(Place::Around(seq)));
                }
                return effects;
            }
            _ => {}
        }
        Vec::new()
    }

    fn handle_prompt_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(mut prompt) = self.export_prompt.take() else { return Vec::new() };
        match key.code {
            KeyCode::Esc => Vec::new(),
            KeyCode::Enter if prompt.file.text().trim().is_empty() => Vec::new(),
            KeyCode::Enter => {
                self.inform("exporting…".to_owned());
                vec![Effect::Export { thread: prompt.thread, file: PathBuf::from(prompt.file.text().trim()) }]
            }
            _ => {
                prompt.file.handle(key);
                self.export_prompt = Some(prompt);
                Vec::new()
            }
        }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.note = None;
        if let Some(prompt) = &mut self.export_prompt {
            prompt.file.insert(text.trim());
            return Vec::new();
        }
        self.focus = Focus::Query;
        self.query.insert(text.trim());
        self.query_changed()
    }

    fn query_changed(&mut self) -> Vec<Effect> {
        self.search_generation += 1;
        (self.is_typing, self.is_searching) = (true, true);
        if self.query.text().trim().is_empty() {
            return self.search(HITS);
        }
        vec![Effect::Start(Timer::Search(self.search_generation))]
    }

    /// Searches for the query. Without one, the list shows all threads.
    fn search(&mut self, limit: usize) -> Vec<Effect> {
        self.search_generation += 1;
        let query = self.query.text().trim();
        if query.is_empty() {
            (self.found, self.is_searching, self.is_typing) = (None, false, false);
            return self.preview();
        }
        self.is_searching = true;
        let is_incomplete = self.is_typing && self.query.is_cursor_at_end() && self.query.text().ends_with(query);
        let query = if is_incomplete { with_prefix(query) } else { query.to_owned() };
        vec![Effect::Search { generation: self.search_generation, query, limit }]
    }

    /// Requests more hits when the end of the list is near.
    fn search_more(&mut self) -> Vec<Effect> {
        let Some(found) = self.found.as_ref().filter(|found| !self.is_searching && found.has_more()) else {
            return Vec::new();
        };
        if found.limit >= PAGE || self.hits_position.selected + MARGIN < found.hits.len() {
            return Vec::new();
        }
        let (query, limit) = (found.query.clone(), (found.limit * 2).min(PAGE));
        self.is_searching = true;
        self.search_generation += 1;
        vec![Effect::Search { generation: self.search_generation, query, limit }]
    }

    fn show_found(&mut self, generation: u64, found: Found) -> Vec<Effect> {
        if generation != self.search_generation {
            return Vec::new();
        }
        self.is_searching = false;
        // More hits of the same search: the selected message stays selected.
        let before = self.found.as_ref().filter(|before| before.query == found.query);
        let selected = before.and_then(|before| before.hits.get(self.hits_position.selected));
        let key = |hit: &HitRow| (hit.thread.id, hit.seq);
        let same = selected.and_then(|selected| found.hits.iter().position(|hit| key(hit) == key(selected)));
        self.hits_position = match same {
            Some(selected) => ListPosition { selected, ..self.hits_position },
            None => ListPosition::default(),
        };
        self.found = Some(found);
        if same.is_some() { Vec::new() } else { self.preview() }
    }

    fn move_by(&mut self, items: isize) -> Vec<Effect> {
        let count = self.count();
        let before = self.position();
        let position = if self.lists_hits() { &mut self.hits_position } else { &mut self.threads_position };
        position.move_by(items, count);
        if position.selected == before.selected { Vec::new() } else { self.preview() }
    }

    /// Shows the selected item beside the list after a delay, if the screen is wide enough.
    fn preview(&mut self) -> Vec<Effect> {
        if !is_wide(self.columns) || self.focus == Focus::Reader {
            return Vec::new();
        }
        let Some(selected) = self.selected() else {
            self.reader = None;
            return Vec::new();
        };
        if self.reader.as_ref().is_some_and(|reader| is_shown(reader, &selected)) {
            return Vec::new();
        }
        self.read_generation += 1;
        vec![Effect::Start(Timer::Preview(self.read_generation))]
    }

    /// Moves to the conversation of the selected item.
    fn open(&mut self) -> Vec<Effect> {
        let Some(selected) = self.selected() else { return Vec::new() };
        let is_shown = self.reader.as_ref().is_some_and(|reader| is_shown(reader, &selected));
        self.focus = Focus::Reader;
        if is_shown { Vec::new() } else { self.read_selected() }
    }

    /// Opens the next or the previous item of the list.
    fn open_neighbour(&mut self, items: isize) -> Vec<Effect> {
        let (count, before) = (self.count(), self.position().selected);
        let position = if self.lists_hits() { &mut self.hits_position } else { &mut self.threads_position };
        position.move_by(items, count);
        if position.selected == before {
            self.inform(if items > 0 { "end of the list" } else { "start of the list" }.to_owned());
            return Vec::new();
        }
        self.read_selected()
    }

    /// Reads the selected item: a hit in its place, or the end of a thread.
    fn read_selected(&mut self) -> Vec<Effect> {
        let Some(selected) = self.selected() else { return Vec::new() };
        let thread = selected.thread().clone();
        let (target, place) = match selected {
            Selected::Thread(_) => (None, Place::Last),
            Selected::Hit(found, hit) => {
                (Some(Target::new(hit.seq, found.reasons(hit), &hit.matches())), Place::Around(hit.seq))
            }
        };
        self.read_generation += 1;
        let (generation, areas) = (self.read_generation, self.areas());
        let whole = target.as_ref().map(|target| target.seq);
        let effect = Effect::Read { generation, thread: thread.id, place, whole };
        self.reader = Some(Reader::new(thread, generation, target, areas.text_columns(), areas.message_rows()));
        vec![effect]
    }

    /// Reads another part of the conversation.
    fn read_again(&mut self, place: Place) -> Vec<Effect> {
        let Some(reader) = &mut self.reader else { return Vec::new() };
        self.read_generation += 1;
        (reader.generation, reader.is_loading) = (self.read_generation, true);
        let whole = reader.target.as_ref().map(|target| target.seq);
        vec![Effect::Read { generation: reader.generation, thread: reader.thread.id, place, whole }]
    }

    /// Reads messages before or after those in memory.
    fn read_more(&mut self) -> Option<Effect> {
        let reader = self.reader.as_mut()?;
        let place = reader.needs()?;
        reader.is_loading = true;
        let whole = reader.target.as_ref().map(|target| target.seq);
        Some(Effect::Read { generation: reader.generation, thread: reader.thread.id, place, whole })
    }

    /// Copies the selected item: the message of a hit, or the id of a thread.
    fn copy_selected(&mut self) -> Vec<Effect> {
        match self.selected() {
            Some(Selected::Hit(_, hit)) => vec![Effect::ReadText { thread: hit.thread.id, seq: hit.seq }],
            Some(Selected::Thread(row)) => {
                let id = row.thread.id.to_string();
                self.copy(id, "the id of the thread")
            }
            None => Vec::new(),
        }
    }

    fn copy(&mut self, text: String, name: &str) -> Vec<Effect> {
        if text.len() > CLIPBOARD_BYTES {
            self.warn(format!("{name} is too long for the clipboard of a terminal; e exports the thread"));
            return Vec::new();
        }
        self.inform(format!("copied {name}, if the terminal supports it (OSC 52)"));
        vec![Effect::SetClipboard(text)]
    }

    fn ask_for_file(&mut self) {
        let shown = self.reader.as_ref().filter(|_| self.focus == Focus::Reader).map(|reader| reader.thread.id);
        let selected = || self.selected().map(|selected| selected.thread().id);
        let Some(thread) = shown.or_else(selected) else { return };
        let file = Input::new(&format!("threadkeep-{}.md", crate::thread_name::short(thread)));
        self.export_prompt = Some(ExportPrompt { thread, file });
    }

    fn fail(&mut self, task: Task, message: String) {
        match task {
            Task::List => {
                self.threads.get_or_insert_default();
            }
            Task::Search(generation) if generation == self.search_generation => {
                self.is_searching = false;
                // Requesting more hits would fail again.
                self.found.iter_mut().for_each(|found| found.limit = PAGE);
            }
            Task::Read(generation) => {
                let reader = self.reader.as_mut().filter(|reader| reader.generation == generation);
                let Some(reader) = reader else { return };
                reader.stop_loading();
            }
            Task::Search(_) => return,
            Task::Copy | Task::Export => {}
        }
        self.warn(message);
    }

    fn inform(&mut self, text: String) {
        self.note = Some(Note { text: crate::output::printable_line(&text), is_error: false });
    }

    fn warn(&mut self, text: String) {
        self.note = Some(Note { text: crate::output::printable_line(&text), is_error: true });
    }
}

/// Whether the conversation on the screen is that of an item of the list.
fn is_shown(reader: &Reader, selected: &Selected<'_>) -> bool {
    let target = reader.target.as_ref();
    reader.thread.id == selected.thread().id
        && match selected {
            Selected::Thread(_) => target.is_none(),
            Selected::Hit(found, hit) => {
                target.is_some_and(|target| target.seq == hit.seq && target.reasons == found.reasons(hit))
            }
        }
}

/// Adds the last word as a prefix to a query that is still being typed.
fn with_prefix(query: &str) -> String {
    let word = query.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_word = TextQuery::parse(query).words.last().is_some_and(|last| last == word);
    let prefix = format!("{word}*");
    if is_word && !TextQuery::parse(&prefix).prefixes.is_empty() {
        format!("{query} {prefix}")
    } else {
        query.to_owned()
    }
}

#[cfg(test)]
mod tests;
