//! Which station a person means.
//!
//! Names repeat, so a name alone seldom identifies a station: qualifiers decide (a line, a borough, the avenue that the
//! tracks run under), and where they do not, the answer says what was assumed or what there is to choose from. Nothing is
//! guessed in silence: see [`Resolution`].

mod phrase;
mod score;

use std::collections::HashMap;

use crate::network::{Network, Station};
use phrase::{Phrase, words_of};
use score::{Candidate, Name, Tier};

/// What people call things in one system, beyond the names of its stations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vocabulary {
    /// A saying and the id of the station it means.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Words and how they are written here: "street" is "st". Both sides of a comparison are written so.
    pub spellings: &'static [(&'static str, &'static str)],
    /// Words that say nothing about which station is meant.
    pub fillers: &'static [&'static str],
    /// Words that many names share, such as "st": a name matches without them.
    pub weak: &'static [&'static str],
    /// Words for an area, and the area's code in the network.
    pub areas: &'static [(&'static str, &'static str)],
    /// Words for a side of town, and the lines that run there.
    pub sides: &'static [(&'static str, &'static [&'static str])],
}

/// A place that a name may mean: a complex, or of a complex the stations of the lines that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The complex.
    pub complex: String,
    /// The ids of its stations, the one that the name fits best first.
    pub stations: Vec<String>,
}

/// What came of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// There is one place of that name.
    Certain(Place),
    /// One place is usually meant; the answer has to say which was taken. The others fit as well, if there are any, or
    /// the name was misspelt.
    Assumed {
        /// The place taken.
        taken: Place,
        /// What else it may be.
        others: Vec<Place>,
    },
    /// Several places have the name, and nothing says which is meant: ask.
    Several(Vec<Place>),
    /// There are places of that name, and the line that was named calls at none of them.
    NotOnLine {
        /// The lines.
        lines: Vec<String>,
        /// The places of that name.
        places: Vec<Place>,
    },
    /// There is no such place.
    Unknown,
}

/// Finds stations by what people call them.
#[derive(Debug)]
pub struct Names<'a> {
    network: &'a Network,
    vocabulary: Vocabulary,
    /// For each station of the network its own name and its aliases.
    names: Vec<Vec<Name>>,
    /// Words of the line of tracks, by station.
    trunks: Vec<Vec<String>>,
}

impl<'a> Names<'a> {
    /// Prepares a network's names.
    pub fn new(network: &'a Network, vocabulary: Vocabulary) -> Self {
        let own = network.stations.iter().map(|station| vec![Name::new(&station.name, &vocabulary, false)]);
        let mut names: Vec<Vec<Name>> = own.collect();
        for (alias, id) in vocabulary.aliases {
            if let Some(index) = network.index(id) {
                names[index].push(Name::new(alias, &vocabulary, true));
            }
        }
        let trunks = network.stations.iter().map(|station| words_of(&station.trunk, &vocabulary)).collect();
        Self { network, vocabulary, names, trunks }
    }

    /// The place that a text names.
    pub fn resolve(&self, text: &str) -> Resolution {
        self.resolve_on(text, &[])
    }

    /// The place that a text names, where it has to do with some lines, given as the signs write them. Lines that the
    /// text itself names go before them.
    pub fn resolve_on(&self, text: &str, lines: &[&str]) -> Resolution {
        const LONGEST_TEXT: usize = 200;
        let text: String = text.chars().take(LONGEST_TEXT).collect();
        if let Some(index) = self.network.index(text.trim()) {
            return Resolution::Certain(self.place(&[index], &[]));
        }
        let mut phrase = Phrase::new(&text, self.network, &self.vocabulary);
        if phrase.lines.is_empty() {
            phrase.lines = lines.iter().map(|line| (*line).to_owned()).collect();
        }
        if phrase.words.is_empty() {
            return Resolution::Unknown;
        }
        let candidates = self.candidates(&phrase);
        let on_line: Vec<Candidate> =
            candidates.iter().filter(|candidate| self.is_on(candidate.station, &phrase.lines)).cloned().collect();
        if on_line.is_empty() && !candidates.is_empty() {
            let places = self.places(&candidates, &[]);
            return Resolution::NotOnLine { lines: phrase.lines, places };
        }
        self.decide(&self.on_most(on_line, &phrase.lines), &phrase)
    }

    /// Those that all of the lines call at, if there are any: "Gun Hill Rd (2 5)" is not the one on the 5 alone.
    fn on_most(&self, candidates: Vec<Candidate>, lines: &[String]) -> Vec<Candidate> {
        let is_on_all =
            |candidate: &&Candidate| lines.iter().all(|line| self.is_on(candidate.station, std::slice::from_ref(line)));
        let on_all: Vec<Candidate> = candidates.iter().filter(is_on_all).cloned().collect();
        if on_all.is_empty() { candidates } else { on_all }
    }

    /// The stations that fit best, best first.
    fn candidates(&self, phrase: &Phrase) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> =
            (0..self.network.stations.len()).filter_map(|station| self.score(station, phrase)).collect();
        let Some(best) = candidates.iter().map(|candidate| candidate.tier).max() else { return candidates };
        // A whole name and one part of a longer name are equally likely to be meant.
        let least = if best >= Tier::Part { Tier::Part.min(best) } else { best };
        candidates.retain(|candidate| candidate.tier >= least);
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.tier));
        candidates
    }

    fn decide(&self, candidates: &[Candidate], phrase: &Phrase) -> Resolution {
        let mut places = self.places(candidates, &phrase.lines);
        let Some(best) = candidates.first() else { return Resolution::Unknown };
        let complex = &self.network.stations[best.station].complex;
        let sayings = candidates.iter().filter(|candidate| candidate.tier == Tier::Alias);
        let is_saying = best.tier == Tier::Alias
            && sayings.clone().all(|candidate| self.network.stations[candidate.station].complex == *complex);
        if is_saying && !sayings.clone().any(|candidate| candidate.is_named) {
            places.extend(self.namesakes(best.station, phrase));
        }
        let taken = places.remove(0);
        places.retain(|place| place.complex != taken.complex);
        match (places.is_empty(), is_saying) {
            (true, _) if best.tier > Tier::Close => Resolution::Certain(taken),
            (true, _) | (false, true) => Resolution::Assumed { taken, others: places },
            (false, false) => {
                places.insert(0, taken);
                Resolution::Several(places)
            }
        }
    }

    /// Places with the same name as a station that was found by a saying alone.
    fn namesakes(&self, station: usize, phrase: &Phrase) -> Vec<Place> {
        let name = &self.names[station][0];
        let same = (0..self.names.len()).filter(|other| self.names[*other][0].is_same(name));
        let same = same.filter(|other| self.is_on(*other, &phrase.lines));
        same.map(|other| self.place(&[other], &phrase.lines)).collect()
    }

    fn score(&self, station: usize, phrase: &Phrase) -> Option<Candidate> {
        let [own, sayings @ ..] = self.names[station].as_slice() else { return None };
        let named = own.tier(phrase, &|word: &str| self.explains(station, &[], word));
        let explained = |word: &str| self.explains(station, &self.names[station], word);
        let said = sayings.iter().filter_map(|name| name.tier(phrase, &explained)).max();
        let tier = named.max(said)?;
        Some(Candidate { station, tier, is_named: named.is_some_and(|tier| tier >= Tier::Part) })
    }

    /// Whether a word that is no part of the name says something true of the station.
    fn explains(&self, station: usize, names: &[Name], word: &str) -> bool {
        let of = &self.network.stations[station];
        let has_area = |(name, area): &(&str, &str)| *name == word && *area == of.area;
        let has_side = |(name, lines): &(&str, &[&str])| {
            *name == word && of.lines.iter().any(|line| lines.contains(&line.as_str()))
        };
        self.trunks[station].iter().any(|known| known == word)
            || self.vocabulary.areas.iter().any(has_area)
            || self.vocabulary.sides.iter().any(has_side)
            || names.iter().any(|name| name.has(word))
    }

    /// Whether some station of the complex is called at by one of the lines; true where none was named.
    fn is_on(&self, station: usize, lines: &[String]) -> bool {
        let complex = &self.network.stations[station].complex;
        let calls = |station: &Station| station.lines.iter().any(|line| lines.contains(line));
        lines.is_empty() || self.network.stations_of(complex).any(calls)
    }

    /// One place for each complex, in the order of the candidates.
    fn places(&self, candidates: &[Candidate], lines: &[String]) -> Vec<Place> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_complex: HashMap<&str, Vec<usize>> = HashMap::new();
        for candidate in candidates {
            let complex = self.network.stations[candidate.station].complex.as_str();
            if !by_complex.contains_key(complex) {
                order.push(complex);
            }
            by_complex.entry(complex).or_default().push(candidate.station);
        }
        order.into_iter().map(|complex| self.place(&by_complex[complex], lines)).collect()
    }

    /// The complex of some stations, these first; with lines named, only what they call at.
    fn place(&self, stations: &[usize], lines: &[String]) -> Place {
        let complex = self.network.stations[stations[0]].complex.clone();
        let named = stations.iter().map(|index| &self.network.stations[*index]);
        let rest = self.network.stations_of(&complex);
        let mut ids: Vec<String> = Vec::new();
        for station in named.chain(rest) {
            let is_asked_for = lines.is_empty() || station.lines.iter().any(|line| lines.contains(line));
            if is_asked_for && !ids.contains(&station.id) {
                ids.push(station.id.clone());
            }
        }
        Place { complex, stations: ids }
    }
}
