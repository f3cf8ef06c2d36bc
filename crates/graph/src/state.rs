//! What a run knows: fields, each with the rule by which a node's update changes it.

/// The state of a run. [`crate::state!`] writes the implementation.
pub trait State: Clone + std::fmt::Debug + Default + Send + Sync + 'static {
    /// What a node changes. The default changes nothing.
    type Update: Default;

    /// Changes the state, field by field.
    fn apply(&mut self, update: Self::Update);
}

/// The rules by which a field changes.
pub mod reduce {
    use threadkeep_core::Map;

    /// New entries come behind the old ones.
    pub fn append<T>(field: &mut Vec<T>, new: Vec<T>) {
        field.extend(new);
    }

    /// What is given replaces the old, also where it is 0 or empty; what is not given does not.
    pub fn replace<T>(field: &mut T, new: Option<T>) {
        if let Some(new) = new {
            *field = new;
        }
    }

    /// As [`replace()`], for a field that may never have been set.
    pub fn set<T>(field: &mut Option<T>, new: Option<T>) {
        if new.is_some() {
            *field = new;
        }
    }

    /// Members are added one by one, new ones in place of old ones with the same name; what they hold is not merged.
    pub fn merge(field: &mut Map, new: Map) {
        field.extend(new);
    }
}

/// Writes a state and its update: each field after the rule by which it changes.
///
/// | rule | field | update | what happens |
/// |---|---|---|---|
/// | `append x: T` | `Vec<T>` | `Vec<T>` | the new entries come behind the old ones |
/// | `replace x: T` | `T` | `Option<T>` | what is given replaces the old, 0 and empty text included |
/// | `set x: T` | `Option<T>` | `Option<T>` | the same, for what is unset at first |
/// | `merge x` | [`threadkeep_core::Map`] | the same | new members win, the others stay |
#[macro_export]
macro_rules! state {
    ($(#[$doc:meta])* $vis:vis struct $name:ident (update $update:ident) {
        $($(#[$field_doc:meta])* $rule:ident $field:ident $(: $type:ty)?),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            $($(#[$field_doc])* pub $field: $crate::state!(@field $rule $($type)?),)*
        }

        #[doc = concat!("What a node changes of [`", stringify!($name), "`].")]
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $update {
            $($(#[$field_doc])* pub $field: $crate::state!(@update $rule $($type)?),)*
        }

        impl $crate::State for $name {
            type Update = $update;

            fn apply(&mut self, update: $update) {
                $($crate::reduce::$rule(&mut self.$field, update.$field);)*
            }
        }
    };
    (@field append $type:ty) => { Vec<$type> };
    (@field replace $type:ty) => { $type };
    (@field set $type:ty) => { Option<$type> };
    (@field merge) => { $crate::Map };
    (@update append $type:ty) => { Vec<$type> };
    (@update replace $type:ty) => { Option<$type> };
    (@update set $type:ty) => { Option<$type> };
    (@update merge) => { $crate::Map };
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{Map, Value};

    use super::State;

    state! {
        /// A state with one field for each rule.
        struct Tube (update TubeUpdate) {
            /// Grows.
            append messages: String,
            /// What is asked.
            replace query: String,
            /// How sure.
            replace confidence: f64,
            /// Who answers.
            set agent: String,
            /// Where the user is.
            merge user_context,
        }
    }

    fn map(json: &str) -> Map {
        serde_json::from_str::<Value>(json).unwrap().as_object().unwrap().clone()
    }

    // S0.16
    #[test]
    fn entries_are_appended_to_none_at_first() {
        let mut state = Tube::default();
        assert!(state.messages.is_empty());
        for text in ["one", "two"] {
            state.apply(TubeUpdate { messages: vec![text.to_owned()], ..TubeUpdate::default() });
        }
        assert_eq!(state.messages, ["one", "two"]);
    }

    // S0.17
    #[test]
    fn nothing_and_empty_text_replace_and_null_does_not() {
        let mut state = Tube::default();
        assert_eq!((state.query.as_str(), state.confidence, &state.agent), ("", 0.0, &None));
        let given = TubeUpdate {
            query: Some("is there a delay?".to_owned()),
            confidence: Some(0.95),
            agent: Some("CIRCLE".to_owned()),
            ..TubeUpdate::default()
        };
        state.apply(given);
        let before = state.clone();
        state.apply(TubeUpdate::default());
        assert_eq!(state, before);
        let empty = TubeUpdate {
            query: Some(String::new()),
            confidence: Some(0.0),
            agent: Some(String::new()),
            ..TubeUpdate::default()
        };
        state.apply(empty);
        assert_eq!((state.query.as_str(), state.confidence, state.agent.as_deref()), ("", 0.0, Some("")));
    }

    // S0.18
    #[test]
    fn members_are_merged_at_the_top_only() {
        let mut state = Tube::default();
        assert!(state.user_context.is_empty());
        for given in [r#"{"at":{"lat":1,"lon":2},"name":"Ana"}"#, r#"{"at":{"lat":3},"mode":null}"#] {
            state.apply(TubeUpdate { user_context: map(given), ..TubeUpdate::default() });
        }
        assert_eq!(state.user_context, map(r#"{"at":{"lat":3},"name":"Ana","mode":null}"#));
    }
}
