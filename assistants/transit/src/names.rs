//! Resolves station names as people use them.
//!
//! Many stations share a name, so qualifiers are taken into account (a line, a borough, the avenue above the tracks). If they
//! are not sufficient, the result states the assumption or lists the alternatives: see [`Resolution`].

mod phrase;
mod score;
mod spelling;

use std::collections::HashMap;

use crate::network::{Network, Station};
use phrase::{Phrase, words_of};
use score::{Candidate, Name, Tier};

/// The vocabulary of one system, in addition to the names of its stations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vocabulary {
    /// Aliases, each with the id of its station.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Spellings and their normal form, such as "street" and "st". Applied to both sides of a comparison.
    pub spellings: &'static [(&'static str, &'static str)],
    /// Words that do not help to identify a station.
    pub fillers: &'static [&'static str],
    /// Words that many names share, such as "st". They do not identify a station: a name matches without them.
    pub generic_words: &'static [&'static str],
    /// Words for an area, each with the area's code in the network.
    pub areas: &'static [(&'static str, &'static str)],
    /// Words for a side of town, each with the lines that run there.
    pub sides: &'static [(&'static str, &'static [&'static str])],
}

/// A possible meaning of a name: a complex, restricted to the stations of the requested lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The id of the complex.
    pub complex: String,
    /// The ids of the matching stations, best match first.
    pub stations: Vec<String>,
}

/// The result of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// Exactly one place has the name.
    Certain(Place),
    /// One place is the usual meaning, or the name is misspelt. The answer should state the assumption. Other places may match
    /// as well.
    Assumed {
        /// The assumed place.
        taken: Place,
        /// The other places that match.
        others: Vec<Place>,
    },
    /// Several places have the name, and the user has to choose.
    Several(Vec<Place>),
    /// Places have the name, but none of them is on the named line.
    NotOnLine {
        /// The named lines.
        lines: Vec<String>,
        /// The places with the name.
        places: Vec<Place>,
    },
    /// No place has the name.
    Unknown,
}

/// Resolves names to stations of a network.
#[derive(Debug)]
pub struct Names<'a> {
    network: &'a Network,
    vocabulary: Vocabulary,
    /// The name and aliases of each station.
    names: Vec<Vec<Name>>,
    /// The words of each station's trunk line.
    trunks: Vec<Vec<String>>,
}

impl<'a> Names<'a> {
    /// Prepares the names of a network.
    pub fn new(network: &'a Network, vocabulary: Vocabulary) -> Self {
        let station_names = network.stations.iter().map(|station| vec![Name::new(&station.name, &vocabulary, false)]);
        let mut names: Vec<Vec<Name>> = station_names.collect();
        for (alias, id) in vocabulary.aliases {
            if let Some(index) = network.index(id) {
                names[index].push(Name::new(alias, &vocabulary, true));
            }
        }
        let trunks = network.stations.iter().map(|station| words_of(&station.trunk, &vocabulary)).collect();
        Self { network, vocabulary, names, trunks }
    }

    /// Resolves a text to a place.
    pub fn resolve(&self, text: &str) -> Resolution {
        self.resolve_on(text, &[])
    }

    /// Resolves a text to a place on one of the given lines (public names). Lines in the text itself take precedence.
    pub fn resolve_on(&self, text: &str, lines: &[&str]) -> Resolution {
        const MAX_CHARACTERS: usize = 200;
        let text: String = text.chars().take(MAX_CHARACTERS).collect();
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
        self.decide(&self.prefer_all_lines(on_line, &phrase.lines), &phrase)
    }

    /// Returns the candidates served by all of the lines; if there are none, all candidates: "Gun Hill Rd (2 5)" is not
    /// the station that is only on the 5.
    fn prefer_all_lines(&self, candidates: Vec<Candidate>, lines: &[String]) -> Vec<Candidate> {
        let is_on_all =
            |candidate: &&Candidate| lines.iter().all(|line| self.is_on(candidate.station, std::slice::from_ref(line)));
        let on_all: Vec<Candidate> = candidates.iter().filter(is_on_all).cloned().collect();
        if on_all.is_empty() { candidates } else { on_all }
    }

    /// Returns the best matching stations, best first.
    fn candidates(&self, phrase: &Phrase) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> =
            (0..self.network.stations.len()).filter_map(|station| self.score(station, phrase)).collect();
        let Some(best) = candidates.iter().map(|candidate| candidate.tier).max() else { return candidates };
        // A whole name and one part of a longer name are equally likely.
        let least = if best >= Tier::Part { Tier::Part.min(best) } else { best };
        candidates.retain(|candidate| candidate.tier >= least);
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.tier));
        candidates
    }

    fn decide(&self, candidates: &[Candidate], phrase: &Phrase) -> Resolution {
        let mut places = self.places(candidates, &phrase.lines);
        let Some(best) = candidates.first() else { return Resolution::Unknown };
        let complex = &self.network.stations[best.station].complex;
        let aliases = candidates.iter().filter(|candidate| candidate.tier == Tier::Alias);
        let is_alias = best.tier == Tier::Alias
            && aliases.clone().all(|candidate| self.network.stations[candidate.station].complex == *complex);
        let taken = places.remove(0);
        places.retain(|place| place.complex != taken.complex);
        // "Metropolitan Av" is the station of that name rather than "Middle Village-Metropolitan Av".
        let mut whole = candidates.iter().filter(|candidate| candidate.tier == Tier::Whole);
        let is_only_whole = best.tier == Tier::Whole
            && whole.all(|candidate| self.network.stations[candidate.station].complex == *complex);
        // "Met museum" is certainly this 86 St. The answer still says which one, because others have the same name.
        let needs_explanation = is_alias
            && !aliases.clone().any(|candidate| candidate.is_named)
            && self.shares_its_name(best.station, phrase);
        match (places.is_empty(), is_alias || is_only_whole) {
            (true, _) if best.tier > Tier::ClosePart && !needs_explanation => Resolution::Certain(taken),
            (true, _) | (false, true) => Resolution::Assumed { taken, others: places },
            (false, false) => {
                places.insert(0, taken);
                Resolution::Several(places)
            }
        }
    }

    /// Whether another complex on the named lines has a station with the same name.
    fn shares_its_name(&self, station: usize, phrase: &Phrase) -> bool {
        let (name, complex) = (&self.names[station][0], &self.network.stations[station].complex);
        let has_name = |other: &usize| self.names[*other][0].is_same(name) && self.is_on(*other, &phrase.lines);
        (0..self.names.len()).filter(has_name).any(|other| self.network.stations[other].complex != *complex)
    }

    fn score(&self, station: usize, phrase: &Phrase) -> Option<Candidate> {
        let [name, aliases @ ..] = self.names[station].as_slice() else { return None };
        let name_tier = name.tier(phrase, &|word: &str| self.explains(station, &[], word));
        let explained = |word: &str| self.explains(station, &self.names[station], word);
        let alias_tier = aliases.iter().filter_map(|name| name.tier(phrase, &explained)).max();
        let tier = name_tier.max(alias_tier)?;
        Some(Candidate { station, tier, is_named: name_tier.is_some_and(|tier| tier >= Tier::Part) })
    }

    /// Whether a word that is not in the name is a correct qualifier of the station.
    fn explains(&self, station: usize, names: &[Name], word: &str) -> bool {
        let known_station = &self.network.stations[station];
        let has_area = |(name, area): &(&str, &str)| *name == word && *area == known_station.area;
        let has_side = |(name, lines): &(&str, &[&str])| {
            *name == word && known_station.lines.iter().any(|line| lines.contains(&line.as_str()))
        };
        self.trunks[station].iter().any(|known| known == word)
            || self.vocabulary.areas.iter().any(has_area)
            || self.vocabulary.sides.iter().any(has_side)
            || names.iter().any(|name| name.has(word))
    }

    /// Whether one of the lines serves the station's complex. True if no line is named.
    fn is_on(&self, station: usize, lines: &[String]) -> bool {
        let complex = &self.network.stations[station].complex;
        let calls = |station: &Station| station.lines.iter().any(|line| lines.contains(line));
        lines.is_empty() || self.network.stations_of(complex).any(calls)
    }

    /// Returns one place per complex, in the order of the candidates.
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

    /// Returns the place for some stations of a complex: these stations first, then the rest of the complex. If lines
    /// are named, the place contains only stations on them.
    fn place(&self, stations: &[usize], lines: &[String]) -> Place {
        let complex = self.network.stations[stations[0]].complex.clone();
        let named = stations.iter().map(|index| &self.network.stations[*index]);
        let rest = self.network.stations_of(&complex);
        let mut ids: Vec<String> = Vec::new();
        for station in named.chain(rest) {
            let is_requested = lines.is_empty() || station.lines.iter().any(|line| lines.contains(line));
            if is_requested && !ids.contains(&station.id) {
                ids.push(station.id.clone());
            }
        }
        Place { complex, stations: ids }
    }
}
