//! The words of messages.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::command::{Verb, is_name};
use crate::kinds::kind_word;

use super::arguments::number_of;

/// Words of ordinary sentences and of commands, which are no names of objects.
static ORDINARY: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("ordinary.txt").split_whitespace().collect());

/// Commands that this assistant refuses, with the reason.
pub(super) const REFUSED: [(&str, &str); 11] = [
    ("port-forward", "port-forward needs a terminal of your own"),
    ("port forward", "port-forward needs a terminal of your own"),
    ("edit", "edit opens an editor; say what to change instead, such as an image or a limit"),
    ("cp", "cp copies files from and to a terminal"),
    ("debug", "debug needs a terminal of your own"),
    ("exec", "exec with a terminal; “exec POD -- PROGRAM ARGUMENTS” runs one program after an approval"),
    ("ssh", "ssh needs a terminal; “exec POD -- PROGRAM ARGUMENTS” runs one program after an approval"),
    ("attach", "attach needs a terminal of your own"),
    ("proxy", "proxy needs a terminal of your own"),
    ("run", "run starts a pod without a workload; paste a manifest with `apply` instead"),
    ("taint", "taint is not supported; cordon or drain the node instead"),
];

/// Verbs: the words, and what they mean. Longer ones come first.
pub(super) const VERBS: &[(&str, Verb)] = &[
    ("undo the cordon", Verb::Uncordon),
    ("undo cordon", Verb::Uncordon),
    ("take pods again", Verb::Uncordon),
    ("rollout restart", Verb::RolloutRestart),
    ("rollout undo", Verb::RolloutUndo),
    ("rollout status", Verb::RolloutStatus),
    ("rollout history", Verb::RolloutHistory),
    ("rollout pause", Verb::RolloutPause),
    ("rollout resume", Verb::RolloutResume),
    ("status of the rollout", Verb::RolloutStatus),
    ("rolled out", Verb::RolloutStatus),
    ("rolling out", Verb::RolloutStatus),
    ("deployment history", Verb::RolloutHistory),
    ("previous versions", Verb::RolloutHistory),
    ("earlier versions", Verb::RolloutHistory),
    ("history of", Verb::RolloutHistory),
    ("revisions", Verb::RolloutHistory),
    ("revision history", Verb::RolloutHistory),
    ("set image", Verb::SetImage),
    ("change the image", Verb::SetImage),
    ("update the image", Verb::SetImage),
    ("set resources", Verb::SetResources),
    ("set env", Verb::SetEnv),
    ("back to the previous", Verb::RolloutUndo),
    ("back to previous", Verb::RolloutUndo),
    ("did it say", Verb::Logs),
    ("roll back", Verb::RolloutUndo),
    ("rollback", Verb::RolloutUndo),
    ("roll it back", Verb::RolloutUndo),
    ("roll that back", Verb::RolloutUndo),
    ("revert", Verb::RolloutUndo),
    ("undo", Verb::RolloutUndo),
    ("back to revision", Verb::RolloutUndo),
    ("back to rev", Verb::RolloutUndo),
    ("get rid of", Verb::Delete),
    ("bin", Verb::Delete),
    ("trash", Verb::Delete),
    ("zap", Verb::Delete),
    ("scrap", Verb::Delete),
    ("purge", Verb::Delete),
    ("ditch", Verb::Delete),
    ("tear down", Verb::Delete),
    ("blow away", Verb::Delete),
    ("delete", Verb::Delete),
    ("remove", Verb::Delete),
    ("kill", Verb::Delete),
    ("destroy", Verb::Delete),
    ("terminate", Verb::Delete),
    ("nuke", Verb::Delete),
    ("wipe", Verb::Delete),
    ("rm", Verb::Delete),
    ("del", Verb::Delete),
    ("uncordon", Verb::Uncordon),
    ("back in rotation", Verb::Uncordon),
    ("back into rotation", Verb::Uncordon),
    ("schedulable again", Verb::Uncordon),
    ("allow scheduling", Verb::Uncordon),
    ("enable scheduling", Verb::Uncordon),
    ("put it back", Verb::RolloutUndo),
    ("how it was", Verb::RolloutUndo),
    ("as it was", Verb::RolloutUndo),
    ("out of rotation", Verb::Cordon),
    ("unschedulable", Verb::Cordon),
    ("disable scheduling", Verb::Cordon),
    ("stop scheduling", Verb::Cordon),
    ("evacuate", Verb::Drain),
    ("cordon", Verb::Cordon),
    ("drain", Verb::Drain),
    ("scale", Verb::Scale),
    ("resize", Verb::Scale),
    ("restart", Verb::RolloutRestart),
    ("bounce", Verb::RolloutRestart),
    ("reboot", Verb::RolloutRestart),
    ("recycle", Verb::RolloutRestart),
    ("redeploy", Verb::RolloutRestart),
    ("pause", Verb::RolloutPause),
    ("unpause", Verb::RolloutResume),
    ("resume", Verb::RolloutResume),
    ("annotate", Verb::Annotate),
    ("label", Verb::Label),
    ("apply", Verb::Apply),
    ("tail", Verb::Logs),
    ("logs", Verb::Logs),
    ("log", Verb::Logs),
    ("logging", Verb::Logs),
    ("printing", Verb::Logs),
    ("stdout", Verb::Logs),
    ("events", Verb::Events),
    ("event", Verb::Events),
    ("top", Verb::Top),
    ("describe", Verb::Describe),
    ("inspect", Verb::Describe),
    ("details", Verb::Describe),
    ("detail", Verb::Describe),
    ("info", Verb::Describe),
    ("tell me about", Verb::Describe),
    ("more about", Verb::Describe),
    ("get", Verb::Get),
    ("list", Verb::Get),
    ("listing", Verb::Get),
    ("showing", Verb::Get),
    ("getting", Verb::Get),
    ("describing", Verb::Describe),
    ("show", Verb::Get),
    ("display", Verb::Get),
    ("fetch", Verb::Get),
    ("give me", Verb::Get),
    ("see", Verb::Get),
    ("status", Verb::Get),
    ("state", Verb::Get),
    ("health", Verb::Get),
    ("healthy", Verb::Get),
    ("ready", Verb::Get),
    ("running", Verb::Get),
    ("how many", Verb::Get),
    ("what", Verb::Get),
    ("which", Verb::Get),
    ("are there", Verb::Get),
    ("is there", Verb::Get),
    ("find", Verb::Get),
    ("check", Verb::Get),
];

/// Whether a word is one of ordinary sentences or commands.
pub(super) fn is_ordinary(word: &str) -> bool {
    ORDINARY.contains(word)
}

/// Whether a word may be a name: it has the form of one, and no other meaning.
pub(super) fn is_candidate(word: &str) -> bool {
    is_name(word)
        && (2..=100).contains(&word.len())
        && !is_ordinary(word)
        && kind_word(word).is_none()
        && number_of(word).is_none()
        && !VERBS.iter().any(|(phrase, _)| *phrase == word)
}
