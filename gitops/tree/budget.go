package tree

import (
	"fmt"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
)

// treeBudget limits the size of the files that declare the Projects and Apps of one tenant, or the Definitions of one kind. It counts them in the order of Git. Files
// beyond the limit are not read, or not kept, and their objects are not changed. A nil treeBudget has no limit.
type treeBudget struct {
	// files says which files the limit is for; unit is what they are counted in.
	files, unit string
	limit       int64
	spending
}

// spending is how much of a budget was spent up to one point in time.
type spending struct {
	bytes int64
	// over is how many findings there were about an exceeded limit.
	over int
}

// fits reports whether the budget has room for a file of this size.
func (b *treeBudget) fits(size int64) bool {
	return b == nil || b.bytes+budget.Declared(size) <= b.limit
}

// exhausted reports whether the budget has no room for even the smallest file. No more files are read then.
func (b *treeBudget) exhausted() bool { return !b.fits(0) }

func (b *treeBudget) spend(bytes int64) {
	if b != nil {
		b.bytes += bytes
	}
}

// reuse spends the bytes that an unchanged folder took in the earlier reading. It returns false if the folder must be read again: a file in
// it exceeded the limit then, or the folder exceeds the limit now.
func (b *treeBudget) reuse(n *node) bool {
	switch {
	case b == nil:
		return true
	case n.over, b.bytes+n.spent > b.limit:
		return false
	}
	b.bytes += n.spent
	return true
}

// now returns what was spent so far.
func (b *treeBudget) now() spending {
	if b == nil {
		return spending{}
	}
	return b.spending
}

// record stores in a folder's node what was spent since the given point, which is before the folder was read.
func (b *treeBudget) record(n *node, since spending) {
	if b != nil {
		n.spent, n.over = b.bytes-since.bytes, b.over > since.over
	}
}

// exceeded returns the finding that a file exceeds the limit.
func (b *treeBudget) exceeded(file string, size int64) document.Finding {
	b.over++
	what := fmt.Sprintf("with this file of %d bytes and those before it, %s take too much", size, b.files)
	over := &budget.Exceeded{Field: budget.TreeBytes, What: what, Is: b.bytes + budget.Declared(size), Limit: b.limit}
	return document.Finding{File: file, Code: code.OverLimit, Why: over.Error()}
}

// rest returns the finding that an entry of a folder and all entries after it are not read, because the budget is exhausted.
func (b *treeBudget) rest(file string, left int) document.Finding {
	f := b.exceeded(file, 0)
	f.Why = fmt.Sprintf("this and the %d %s after it are not read: %s", left, b.unit, f.Why)
	return f
}

// takes returns how much of the budget the node's own object or problems take, in bytes.
func (n *node) takes() int64 {
	if n.object == nil {
		return weightOf(n.problems)
	}
	return budget.Declared(n.size)
}

// weightOf returns how much memory problems take, in bytes.
func weightOf(problems []Problem) (sum int64) {
	for i := range problems {
		sum += int64(len(problems[i].File) + len(problems[i].Why) + perProblem)
	}
	return sum
}

// perProblem is how much memory a Problem takes in addition to its texts, in bytes.
const perProblem = 144
