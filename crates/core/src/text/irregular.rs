//! Irregular English forms, which a stemmer does not recognise: `bought` is a form of `buy`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::term_matcher::Prefix;

/// Returns the base of an irregular form, or the word itself.
pub(super) fn base_of(word: &str) -> &str {
    BASES.get(word).copied().unwrap_or(word)
}

/// Returns the words that have none of these prefixes although their base or stem may have one of them.
pub(super) fn forms_with_other_prefixes(prefixes: &[Prefix]) -> Vec<&'static str> {
    let matches = |word: &str| prefixes.iter().any(|prefix| prefix.matches(word));
    let mut forms: Vec<&str> =
        BASES.iter().filter(|(form, base)| matches(base) && !matches(form)).map(|(form, _)| *form).collect();
    forms.extend(STEMS_WITH_OTHER_PREFIXES);
    forms.sort_unstable();
    forms
}

/// Words that do not begin with the prefix of their English stem.
pub(super) const STEMS_WITH_OTHER_PREFIXES: [&str; 3] = ["dying", "lying", "tying"];

static BASES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = FORMS.lines().map(str::split_whitespace);
    let forms = lines.filter_map(|mut line| Some((line.next()?, line)));
    forms.flat_map(|(base, forms)| forms.map(move |form| (form, base))).collect()
});

// The base comes first. A form that is also a different word (`left`, `saw`, `felt`) is assigned to the verb, which is more common.
const FORMS: &str = "
    become became
    begin began begun
    blow blew blown
    break broke broken
    bring brought
    build built
    buy bought
    catch caught
    child children
    choose chose chosen
    come came
    deal dealt
    draw drew drawn
    dream dreamt
    drink drank drunk
    drive drove driven
    eat ate eaten
    fall fell fallen
    feed fed
    feel felt
    fight fought
    find found
    fly flew flown
    foot feet
    forget forgot forgotten
    forgive forgave forgiven
    get got gotten
    give gave given
    go went gone
    grow grew grown
    hang hung
    hear heard
    hide hid hidden
    hold held
    keep kept
    know knew known
    lead led
    learn learnt
    leave left
    lend lent
    lose lost
    make made
    man men
    mean meant
    meet met
    mouse mice
    pay paid
    person people
    ride rode ridden
    ring rang rung
    rise rose risen
    run ran
    say said
    see saw seen
    seek sought
    sell sold
    send sent
    shake shook shaken
    shine shone
    shoot shot
    sing sang sung
    sit sat
    sleep slept
    speak spoke spoken
    spend spent
    stand stood
    steal stole stolen
    stick stuck
    swim swam swum
    take took taken
    teach taught
    tell told
    think thought
    throw threw thrown
    tooth teeth
    understand understood
    wake woke woken
    wear wore worn
    win won
    woman women
    write wrote written";
