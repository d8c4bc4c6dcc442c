package tree

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Reader reads commits. Safe for concurrent use.
type Reader struct {
	// Limits are those of tenants whose Tenant sets none. They are set before the first reading.
	Limits budget.Limits
	kinds  map[string]*kind
}

// NewReader compiles the schemas and rules of the embedded CustomResourceDefinitions, once for all reading.
func NewReader() (*Reader, error) {
	kinds, err := compileKinds()
	if err != nil {
		return nil, err
	}
	return &Reader{kinds: kinds, Limits: budget.Default()}, nil
}

// Read reads and checks all the files that are not the same as in an earlier tree, which is nil for none: the rest is taken
// over from it. It always returns a tree; what is wrong is in its problems.
func (r *Reader) Read(files Files, scope Scope, before *Tree) *Tree {
	if before == nil || before.Scope != scope {
		before = &Tree{}
	}
	p := &pass{kinds: r.kinds, limits: r.Limits, root: files, files: files, scope: scope, accepted: before.accepted}
	t := &Tree{Scope: scope, Limits: r.Limits}
	p.readRoot(t, before)
	t.count()
	return t
}

// pass is one reading of one commit. Paths are from where the files begin.
type pass struct {
	kinds map[string]*kind
	root  Files
	files Files
	scope Scope
	// accepted are the digests of what the API server accepted, by what they declare.
	accepted map[Ref]string
	// limits are those of tenants whose Tenant sets none, and room what is left of them for the tenant whose folder is read; nil
	// outside of one.
	limits budget.Limits
	room   *room
}

// Accepted is the tree to give Read before the first one: of all there was, it knows only what the API server accepted, as the
// annotation TreeAnnotation of the live objects tells. What has the same digest is not held against schema and rules again, which
// is most of the work of reading a commit.
func Accepted(scope Scope, digests map[Ref]string) *Tree {
	return &Tree{Scope: scope, accepted: digests}
}

// in returns the pass with limits of its own for what is listed below a folder.
func (p *pass) in(dir string) (*pass, error) {
	sub, err := p.root.Sub(dir)
	if err != nil {
		return p, err
	}
	within := *p
	within.files = below{sub, dir}
	return &within, nil
}

// below are the files of a folder under the paths that they have from the root.
type below struct {
	Files
	dir string
}

// Open implements fs.FS.
func (b below) Open(name string) (fs.File, error) { return b.Files.Open(b.from(name)) }

// ReadDir implements fs.ReadDirFS.
func (b below) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(b.Files, b.from(name)) }

// Digest implements Files.
func (b below) Digest(name string) (string, error) { return b.Files.Digest(b.from(name)) }

// from returns the path from the folder; what is not in it is not there.
func (b below) from(name string) string {
	if name == b.dir {
		return "."
	}
	if len(name) <= len(b.dir) || name[:len(b.dir)+1] != b.dir+"/" {
		return "" // which is no valid path
	}
	return name[len(b.dir)+1:]
}

// finding is something wrong in a file, before it is known what that holds back. The file is relative to Scope.Path.
type finding struct {
	file      string
	line      int
	why       string
	misplaced bool
	// err is the store's, when the file could not be read.
	err error
}

// unread is the finding that the store did not give a file. That it is too large is final; all else may be given the next
// time.
func unread(file string, err error) finding {
	if errors.Is(err, failure.ErrTooLarge) {
		return finding{file: file, why: err.Error()}
	}
	return finding{file: file, why: "reading it from the repository: " + err.Error(), err: err}
}

// problems words findings, for the object that stays as it was because of them; the zero Ref for none.
func (p *pass) problems(of Ref, findings ...finding) []Problem {
	var all []Problem
	for _, f := range findings {
		all = append(all, Problem{
			File: printable(path.Join(p.scope.Path, f.file)), Line: f.line, Why: f.why, Of: of, Misplaced: f.misplaced, Err: f.err,
		})
	}
	p.room.take(weightOf(all))
	return all
}

// listing is what a folder holds.
type listing struct {
	entries []fs.DirEntry
	// odd are the entries that are neither files nor folders, with why they cannot be used.
	odd map[string]finding
}

// list lists a folder. What has nothing to do with kubeop at the root is left out.
func (p *pass) list(dir string) (listing, error) {
	entries, err := fs.ReadDir(p.files, dir)
	if err != nil {
		return listing{}, err
	}
	l := listing{odd: map[string]finding{}}
	for _, e := range entries {
		switch why := unusable(e); {
		case dir == "." && ignoredAtRoot(e.Name()):
		case why != "":
			l.odd[e.Name()] = finding{file: join(dir, e.Name()), why: why}
		default:
			l.entries = append(l.entries, e)
		}
	}
	return l, nil
}

// strays returns the findings about what cannot be used, but for the entries of those names.
func (l listing) strays(but ...string) []finding {
	var found []finding
	for name, f := range l.odd {
		if !slices.Contains(but, name) {
			found = append(found, f)
		}
	}
	return found
}

// file returns the regular file of that name.
func (l listing) file(name string) (fs.DirEntry, bool) {
	i := slices.IndexFunc(l.entries, func(e fs.DirEntry) bool { return e.Name() == name && !e.IsDir() })
	if i < 0 {
		return nil, false
	}
	return l.entries[i], true
}

// folder reports whether there is a folder of that name.
func (l listing) folder(name string) bool {
	return slices.ContainsFunc(l.entries, func(e fs.DirEntry) bool { return e.Name() == name && e.IsDir() })
}

// nearest returns the name of the regular file that is named as wanted, or else nearly so; "" for none.
func (l listing) nearest(want string) string {
	found := ""
	for _, e := range l.entries {
		if e.IsDir() || !nearly(e.Name(), want) {
			continue
		}
		if found == "" || e.Name() == want {
			found = e.Name()
		}
	}
	return found
}

// digest returns the digest of an entry.
func (p *pass) digest(file string, e fs.DirEntry) (string, error) {
	if known, ok := e.(interface{ Digest() string }); ok {
		return known.Digest(), nil
	}
	return p.files.Digest(file)
}

// count adds up what the tree declares, and sorts what is told.
func (t *Tree) count() {
	sortProblems(t.Problems)
	sortProblems(t.Strays)
	t.counts = Counts{Problems: len(t.Problems) + len(t.Strays)}
	for _, tenant := range t.Tenants {
		t.counts.add(tenant.counts)
	}
}

func (t *Tenant) count() {
	sortProblems(t.Strays)
	t.counts = Counts{Problems: len(t.problems) + len(t.Strays)}
	if t.Declared() {
		t.counts.Tenants = 1
	}
	for _, project := range t.Projects {
		t.counts.add(project.counts)
	}
}

func (p *Project) count() {
	sortProblems(p.Strays)
	p.counts = Counts{Problems: len(p.problems) + len(p.Strays)}
	if p.Declared() {
		p.counts.Projects = 1
	}
	for _, app := range p.Apps {
		p.counts.Problems += len(app.problems)
		if app.Declared() {
			p.counts.Apps++
		}
	}
}
