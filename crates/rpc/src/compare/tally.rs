//! How much was asked, and how often which place differed.

use std::collections::BTreeMap;

use super::{ComparedCall, Difference};

/// Kinds of differences that are told apart. A server that is wholly another gives many; more of
/// them tell nobody anything.
const GROUPS_MAX: usize = 1000;

/// What came out of all questions.
#[derive(Debug, Default)]
pub struct CompareTally {
    methods: BTreeMap<&'static str, MethodCount>,
    groups: BTreeMap<(&'static str, String), DifferenceGroup>,
    ungrouped: u64,
}

/// One method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodCount {
    /// How often it was asked.
    pub asked: u64,
    /// How many of these answers differed.
    pub differing: u64,
}

/// One kind of difference: a method and a place, whatever the positions in lists.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferenceGroup {
    /// How often.
    pub count: u64,
    /// When the example was asked, among all questions.
    order: (u64, u64),
    /// What was asked where it was first met.
    pub question: ComparedCall,
    /// And what differed there.
    pub example: Difference,
}

impl CompareTally {
    /// Counts a question and the places where its answers differ. `order` says when it was to be
    /// asked: the example of a group is the first of that order, whoever answers first.
    pub fn add(
        &mut self,
        order: (u64, u64),
        question: &ComparedCall,
        differences: Vec<Difference>,
    ) {
        let method = self.methods.entry(question.method).or_default();
        method.asked += 1;
        method.differing += u64::from(!differences.is_empty());
        for example in differences {
            let key = (question.method, example.pattern.clone());
            if let Some(group) = self.groups.get_mut(&key) {
                group.count += 1;
                if order < group.order {
                    *group = DifferenceGroup {
                        count: group.count,
                        order,
                        question: question.clone(),
                        example,
                    };
                }
            } else if self.groups.len() < GROUPS_MAX {
                let group =
                    DifferenceGroup { count: 1, order, question: question.clone(), example };
                self.groups.insert(key, group);
            } else {
                self.ungrouped += 1;
            }
        }
    }

    /// Counts by method, in order of their names.
    pub fn methods(&self) -> impl Iterator<Item = (&'static str, MethodCount)> {
        self.methods.iter().map(|(name, count)| (*name, *count))
    }

    /// Every kind of difference by its method and pattern, in order.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, &str, &DifferenceGroup)> {
        self.groups.iter().map(|((method, pattern), group)| (*method, pattern.as_str(), group))
    }

    /// Differences beyond those that are told apart.
    #[must_use]
    pub fn ungrouped(&self) -> u64 {
        self.ungrouped
    }

    /// All questions.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.methods.values().map(|count| count.asked).sum()
    }

    /// All differences.
    #[must_use]
    pub fn differences(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum::<u64>() + self.ungrouped
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(number: u64) -> ComparedCall {
        ComparedCall { method: "eth_getBlockByNumber", params: json!([number]) }
    }

    fn difference(pattern: &str) -> Difference {
        let [path, pattern] = [pattern.replace('*', "3"), pattern.to_owned()];
        Difference { path, pattern, ours: "1".to_owned(), theirs: "2".to_owned() }
    }

    #[test]
    fn differences_of_one_place_are_one_group_with_the_first_as_example() {
        let mut tally = CompareTally::default();
        tally.add((2, 0), &question(2), vec![difference("result.*.a"), difference("result.*.a")]);
        tally.add((1, 0), &question(1), vec![difference("result.*.a"), difference("result.b")]);
        tally.add((3, 0), &question(3), Vec::new());
        let groups: Vec<_> = tally.groups().collect();
        let found: Vec<_> = groups
            .iter()
            .map(|(_, pattern, group)| (*pattern, group.count, group.question.params.clone()))
            .collect();
        assert_eq!(found, [("result.*.a", 3, json!([1])), ("result.b", 1, json!([1]))]);
        assert_eq!((tally.asked(), tally.differences()), (3, 4));
        let count = MethodCount { asked: 3, differing: 2 };
        assert_eq!(tally.methods().collect::<Vec<_>>(), [("eth_getBlockByNumber", count)]);
    }

    #[test]
    fn kinds_of_differences_are_limited_and_none_goes_uncounted() {
        let mut tally = CompareTally::default();
        let many = (0..=GROUPS_MAX).map(|name| difference(&format!("result.{name}")));
        tally.add((0, 0), &question(0), many.collect());
        assert_eq!((tally.groups().count(), tally.ungrouped()), (GROUPS_MAX, 1));
        assert_eq!(tally.differences(), 1001);
    }
}
