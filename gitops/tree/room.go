package tree

import (
	"fmt"
	"io/fs"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// room counts what the files of one tenant take that declare its Projects and Apps, in the order of Git. What is over the limit is not
// read, or not kept: the object that it declares stays as it is. A nil room has no limit.
type room struct {
	tenant      string
	limit, used int64
	// overs are how many files were over the limit.
	overs int
}

// Within is the reader with other limits for a tenant whose own repository is read. In the platform repository each tenant.yaml says
// its own.
func (r *Reader) Within(limits budget.Limits) *Reader {
	within := *r
	within.Limits = limits
	return &within
}

// roomOf is the room of a tenant whose file was read.
func (p *pass) roomOf(t *Tenant) *room {
	limits := p.limits
	if t.object != nil {
		limits = limits.With(&decode(&t.node, &v1alpha1.Tenant{}).Spec.Limits)
	}
	return &room{tenant: t.ref.Tenant, limit: limits.TreeBytes}
}

// fits reports whether a file of so many bytes may be kept.
func (r *room) fits(size int64) bool {
	return r == nil || r.used+budget.Declared(size) <= r.limit
}

// full reports whether not even the smallest file may be kept: nothing more is looked at.
func (r *room) full() bool { return !r.fits(0) }

func (r *room) take(size int64) {
	if r != nil {
		r.used += size
	}
}

// again takes what a folder took that is the same as before; false where that is not the same now.
func (r *room) again(n *node) bool {
	switch {
	case r == nil:
		return true
	case n.over, r.used+n.took > r.limit:
		return false
	}
	r.used += n.took
	return true
}

// note has a folder remember what was taken since there were so many bytes used, and files over.
func (r *room) note(n *node, used int64, overs int) {
	if r != nil {
		n.took, n.over = r.used-used, r.overs > overs
	}
}

func (r *room) state() (used int64, overs int) {
	if r == nil {
		return 0, 0
	}
	return r.used, r.overs
}

// exceeded is the finding that a file, or all from it on, is over the limit.
func (r *room) exceeded(file string, size int64) finding {
	r.overs++
	what := fmt.Sprintf("with this file of %d bytes and those before it, the files project.yaml and app.yaml of tenant %s take too much", size, r.tenant)
	over := &budget.Exceeded{Field: budget.TreeBytes, What: what, Is: r.used + budget.Declared(size), Limit: r.limit}
	return finding{file: file, why: over.Error()}
}

// stop is the finding that nothing is read from an entry of a folder on, because the room is full.
func (r *room) stop(file string, left int) finding {
	f := r.exceeded(file, 0)
	f.why = fmt.Sprintf("this and the %d folders after it are not read: %s", left, f.why)
	return f
}

// tooLarge finds that a file is over the limit, before it is read. before is the node of the same folder in the tree before: where that
// is the same, it knows what the file is with its aliases written out.
func (p *pass) tooLarge(n *node, file string, e fs.DirEntry, before *node) []finding {
	if p.room.fits(maxFile) {
		return nil // As nearly always: its size need not be looked up.
	}
	info, err := e.Info()
	if err != nil {
		return []finding{unread(file, err)}
	}
	size := info.Size()
	if size > maxFile {
		return nil // What is larger than any file may be is told so.
	}
	if before.file == n.file {
		n.needs = before.needs
	}
	switch {
	case !p.room.fits(size): // Told by its own size, whatever is known beside: a new process would tell the same.
		return []finding{p.room.exceeded(file, size)}
	case !p.room.fits(n.needs):
		return []finding{p.room.exceeded(file, n.needs)}
	}
	return nil
}

// keep takes the room for an object; false, with why, where it has none.
func (p *pass) keep(n *node, d judged, text []byte) bool {
	n.needs = max(int64(d.size), int64(len(text)))
	if !p.room.fits(n.needs) {
		n.problems = p.problems(n.ref, p.room.exceeded(d.file, n.needs))
		return false
	}
	p.room.take(budget.Declared(n.needs))
	return true
}

// takes is what is remembered of the node itself, in bytes.
func (n *node) takes() int64 {
	if n.object == nil {
		return weightOf(n.problems)
	}
	return budget.Declared(n.needs)
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
