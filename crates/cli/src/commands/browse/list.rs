//! The position in a list that is longer than the screen.

/// The selected item and the first visible one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListPosition {
    pub(super) selected: usize,
    pub(super) top: usize,
}

impl ListPosition {
    /// Moves the selection by `items` (up if negative), but not beyond either end of the list.
    pub(super) fn move_by(&mut self, items: isize, count: usize) {
        self.selected = self.selected.saturating_add_signed(items);
        self.clamp(count);
    }

    /// Limits the selection to a list of `count` items.
    pub(super) fn clamp(&mut self, count: usize) {
        self.selected = self.selected.min(count.saturating_sub(1));
    }

    /// Scrolls so that the selected item is visible and no row is left empty.
    pub(super) fn scroll(&mut self, count: usize, visible: usize) {
        let visible = visible.max(1);
        let first = (self.selected + 1).saturating_sub(visible);
        self.top = self.top.clamp(first, self.selected).min(count.saturating_sub(visible)).max(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_stays_in_the_list_and_on_the_screen() {
        let mut position = ListPosition::default();
        for (items, expected) in [(-1, (0, 0)), (3, (3, 0)), (4, (7, 3)), (-2, (5, 3)), (100, (9, 5)), (-100, (0, 0))] {
            position.move_by(items, 10);
            position.scroll(10, 5);
            assert_eq!((position.selected, position.top), expected, "{items}");
        }
    }

    #[test]
    fn a_shorter_list_or_a_taller_screen_scrolls_back() {
        let mut position = ListPosition { selected: 9, top: 5 };
        position.scroll(10, 8);
        assert_eq!(position.top, 2);
        position.clamp(3);
        position.scroll(3, 8);
        assert_eq!(position, ListPosition { selected: 2, top: 0 });
        position.clamp(0);
        position.scroll(0, 0);
        assert_eq!(position, ListPosition::default());
    }
}
