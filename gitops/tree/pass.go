package tree

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// pass is one reading of one commit. Paths are relative to Scope.Path.
type pass struct {
	kinds check.Kinds
	root  Files
	files Files
	scope Scope
	// platform: the folder platform/ is read, see Reader.
	platform bool
	// domains are those that each tenant has in the cluster.
	domains func() (map[string][]string, error)
	// accepted are the digests of the files and folders whose objects the API server has accepted, by object.
	accepted map[identity.Ref]string
	// limits apply to tenants that set no limits. budget is the budget of the tenant whose folder is being read; nil outside of a tenant's
	// folder.
	limits budget.Limits
	budget *treeBudget
	// preview is the preview that is read; nil for what the commit declares.
	preview *Preview
}

// in returns a copy of the pass for one folder, so that the limit on listed files counts for this folder alone.
func (p *pass) in(dir string) (*pass, error) {
	sub, err := p.root.Sub(dir)
	if err != nil {
		return p, err
	}
	within := *p
	within.files = below{sub, dir}
	return &within, nil
}

// below gives access to the files of one folder by their paths from the root.
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

// from converts a path from the root to a path from the folder; "" for a path outside of the folder.
func (b below) from(name string) string {
	if name == b.dir {
		return "."
	}
	if len(name) <= len(b.dir) || name[:len(b.dir)+1] != b.dir+"/" {
		return "" // The empty path is invalid, so the file is not found.
	}
	return name[len(b.dir)+1:]
}

// readFailure returns the finding that the store could not read a file. A file that is too large stays so; other errors are kept in Err,
// because reading again may help.
func readFailure(file string, err error) document.Finding {
	if errors.Is(err, failure.ErrTooLarge) {
		return document.Finding{File: file, Code: code.OverLimit, Why: err.Error()}
	}
	return document.Finding{File: file, Code: code.Unreadable, Why: "reading it from the repository: " + err.Error(), Err: err}
}

// problems converts findings to Problems of an object, and spends budget for them. The last accepted version of the object stays in the
// cluster. The zero Ref stands for no object.
func (p *pass) problems(of identity.Ref, findings ...document.Finding) []Problem {
	var all []Problem
	for _, f := range findings {
		if p.preview != nil {
			f.Why = p.preview.Prefix() + f.Why
		}
		f.File = few.Printable(path.Join(p.scope.Path, f.File))
		all = append(all, Problem{f, of})
	}
	p.budget.spend(weightOf(all))
	return all
}

// listing lists the entries of a folder.
type listing struct {
	entries []fs.DirEntry
	// unusable are the entries that are neither files nor folders, with the findings about them.
	unusable map[string]document.Finding
}

// list lists a folder. At the root it leaves out entries that do not concern kubeop.
func (p *pass) list(dir string) (listing, error) {
	entries, err := fs.ReadDir(p.files, dir)
	if err != nil {
		return listing{}, err
	}
	l := listing{unusable: map[string]document.Finding{}}
	for _, e := range entries {
		switch why := layout.Unusable(e); {
		case dir == "." && layout.IgnoredAtRoot(e.Name()):
		case why != "":
			l.unusable[e.Name()] = document.Finding{File: layout.Join(dir, e.Name()), Code: code.UnusableFile, Why: why}
		default:
			l.entries = append(l.entries, e)
		}
	}
	return l, nil
}

// strays returns the findings about unusable entries, except those with the given names.
func (l listing) strays(but ...string) []document.Finding {
	var found []document.Finding
	for name, f := range l.unusable {
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

// nearest returns the regular file with the wanted name or, without one, a file with a similar name; "" for none.
func (l listing) nearest(want string) string {
	found := ""
	for _, e := range l.entries {
		if e.IsDir() || !layout.Nearly(e.Name(), want) {
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
	var digest string
	var err error
	if known, ok := e.(interface{ Digest() string }); ok {
		digest = known.Digest()
	} else {
		digest, err = p.files.Digest(file)
	}
	if err == nil && p.preview != nil {
		digest += p.preview.suffix()
	}
	return digest, err
}

// maxValues is how many values a file may contain, as counted by yamlcheck.MaxValues. The parser uses about 200 bytes for each.
const maxValues = 200_000

// read reads and parses a file. If the document has findings, its value must not be used.
func (p *pass) read(name string) *document.Document {
	d := &document.Document{File: name}
	data, err := readAtMost(p.files, name, document.MaxSize+1)
	switch {
	case err != nil:
		d.Findings = []document.Finding{readFailure(name, err)}
	case len(data) > document.MaxSize:
		d.Add(code.FileTooLarge, yamlcheck.Position{}, "the file is larger than %d KiB", document.MaxSize>>10)
	case yamlcheck.MaxValues(data) > maxValues:
		d.Add(code.FileTooLarge, yamlcheck.Position{}, "the file may hold more than %d mappings, lists and values: write some of it into files of the app's folder", maxValues)
	default:
		return document.Parse(name, data)
	}
	return d
}

func readAtMost(files fs.FS, name string, bytes int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, bytes))
}
