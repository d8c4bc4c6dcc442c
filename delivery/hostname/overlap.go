package hostname

import "strings"

// Entry is a domain of an owner, with its place in the owner's list.
type Entry struct {
	Owner string
	At    int
}

// Entries are the domains of all owners, by the name that they have, and by the names that they are below.
type Entries struct{ at, below map[string][]Entry }

// Add adds the domains of an owner.
func (e *Entries) Add(owner string, domains []string) {
	if e.at == nil {
		e.at, e.below = map[string][]Entry{}, map[string][]Entry{}
	}
	for i, name := range domains {
		e.at[name] = append(e.at[name], Entry{owner, i})
		for parent := parentOf(name); parent != ""; parent = parentOf(parent) {
			e.below[parent] = append(e.below[parent], Entry{owner, i})
		}
	}
}

func parentOf(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}

// Overlap returns the first entry of another owner that a domain is, or is below or above: the widest one first, and those below last. It returns false if there is none.
func (e *Entries) Overlap(owner, domain string) (Entry, bool) {
	lists := [][]Entry{e.below[domain]}
	for within := domain; within != ""; within = parentOf(within) {
		lists = append([][]Entry{e.at[within]}, lists...)
	}
	for _, list := range lists {
		for _, other := range list {
			if other.Owner != owner {
				return other, true
			}
		}
	}
	return Entry{}, false
}
