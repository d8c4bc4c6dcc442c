package tree

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/allowance"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/files"
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
	domains   func() (map[string][]string, error)
	placement Placement
	// accepted are the digests of the files and folders whose objects the API server has accepted, by object.
	accepted map[identity.Ref]string
	// limits apply to tenants that set no limits. budget is the budget of the tenant whose folder is being read; nil outside of a tenant's
	// folder.
	limits budget.Limits
	budget *allowance.Allowance
	// preview is the preview that is read; nil for what the commit declares.
	preview *Preview
}

// in returns a copy of the pass for one folder, so that the limit on listed files counts for this folder alone.
func (p *pass) in(dir string) (*pass, error) {
	sub, err := files.Below(p.root, dir)
	if err != nil {
		return p, err
	}
	within := *p
	within.files = sub
	return &within, nil
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
	p.budget.Spend(weightOf(all))
	return all
}

// listing is a folder, with findings about its unusable entries.
type listing struct {
	layout.Listing
	unusable map[string]document.Finding
}

func (p *pass) list(dir string) (listing, error) {
	all, err := layout.List(p.files, dir)
	l := listing{all, map[string]document.Finding{}}
	for name, why := range all.Unusable {
		l.unusable[name] = document.Finding{File: layout.Join(dir, name), Code: code.UnusableFile, Why: why}
	}
	return l, err
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
	data, err := files.ReadAtMost(p.files, name, document.MaxSize+1)
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
