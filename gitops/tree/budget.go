package tree

import (
	"fmt"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/document"
)

// treeBudget counts the size of the files of one tenant that declare its Projects and Apps, in the order of Git. Files beyond the limit are
// not read, or not kept, and their objects are not changed. A nil treeBudget has no limit.
type treeBudget struct {
	tenant string
	limit  int64
	spending
}

// spending is what was spent up to one point in time.
type spending struct {
	bytes int64
	// over is how many files were over the limit.
	over int
}

// fits reports whether a file of so many bytes may be kept.
func (b *treeBudget) fits(size int64) bool {
	return b == nil || b.bytes+budget.Declared(size) <= b.limit
}

// exhausted reports whether not even the smallest file may be kept, so that no more files are read.
func (b *treeBudget) exhausted() bool { return !b.fits(0) }

func (b *treeBudget) spend(bytes int64) {
	if b != nil {
		b.bytes += bytes
	}
}

// reuse spends what a folder took that is the same as before; false where that is not the same now.
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

// now is what was spent until now.
func (b *treeBudget) now() spending {
	if b == nil {
		return spending{}
	}
	return b.spending
}

// record stores on a folder's node what was spent on it since then.
func (b *treeBudget) record(n *node, since spending) {
	if b != nil {
		n.spent, n.over = b.bytes-since.bytes, b.over > since.over
	}
}

// exceeded is the finding that a file, or all from it on, is over the limit.
func (b *treeBudget) exceeded(file string, size int64) document.Finding {
	b.over++
	what := fmt.Sprintf("with this file of %d bytes and those before it, the files project.yaml and app.yaml of tenant %s take too much", size, b.tenant)
	over := &budget.Exceeded{Field: budget.TreeBytes, What: what, Is: b.bytes + budget.Declared(size), Limit: b.limit}
	return document.Finding{File: file, Why: over.Error()}
}

// rest is the finding that nothing is read from an entry of a folder on, because the budget is exhausted.
func (b *treeBudget) rest(file string, left int) document.Finding {
	f := b.exceeded(file, 0)
	f.Why = fmt.Sprintf("this and the %d folders after it are not read: %s", left, f.Why)
	return f
}

// takes is what is remembered of the node itself, in bytes.
func (n *node) takes() int64 {
	if n.object == nil {
		return weightOf(n.problems)
	}
	return budget.Declared(n.size)
}

// weightOf is what problems take in memory, in bytes.
func weightOf(problems []Problem) (sum int64) {
	for i := range problems {
		sum += int64(len(problems[i].File) + len(problems[i].Why) + perProblem)
	}
	return sum
}

// perProblem is what a Problem takes beside its texts.
const perProblem = 128
