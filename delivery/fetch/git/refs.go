package git

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

const (
	headRef    = "HEAD"
	branchRefs = "refs/heads/"
	tagRefs    = "refs/tags/"
)

// target is what a GitRepositoryRef points to now.
type target struct {
	// label is the part of a revision before the "@"; empty for a commit without a branch.
	label string
	// commit is the commit to read.
	commit plumbing.Hash
	// want is what to request from the server: the commit, or the annotated tag that names it, because a server only has to serve the
	// objects that it listed.
	want plumbing.Hash
	// tag is the tag that names the commit, empty when none does. withTag means that the tag is required, too.
	tag     string
	withTag bool
	// unlisted means that the commit was named by hash and no ref points to it, so the server may refuse to serve it.
	unlisted bool
	// tips are refs that may have an unlisted commit in their history.
	tips []plumbing.Hash
}

// revision is the name of the commit as Flux writes it: "main@sha1:<hash>", "v1.2.3@sha1:<hash>",
// "refs/pull/1/head@sha1:<hash>" for a ref by name, and "sha1:<hash>" for a commit without a branch.
func (t target) revision() string {
	if t.label == "" {
		return "sha1:" + t.commit.String()
	}
	return few.Quote(t.label) + "@sha1:" + t.commit.String()
}

// ErrEmpty is the failure.ErrNotFound of a repository without any commit.
var ErrEmpty = errors.New("empty repository")

// resolve finds the commit that a ref points to. The order is Flux's: commit, name, semver, tag, branch. Unlike Flux, which falls back to
// "master", an empty ref means the branch of the remote's HEAD.
func resolve(refs *packp.AdvRefs, ref *sourcev1.GitRepositoryRef) (target, error) {
	if ref == nil {
		ref = &sourcev1.GitRepositoryRef{}
	}
	if refs.Head == nil && len(refs.References) == 0 {
		return target{}, failure.Because(failure.ErrNotFound, ErrEmpty, "the repository is empty: push a first commit")
	}
	switch {
	case ref.Commit != "":
		return resolveCommit(refs, ref.Commit, ref.Branch)
	case ref.Name != "":
		return resolveName(refs, ref.Name)
	case ref.SemVer != "":
		return resolveSemver(refs, ref.SemVer)
	case ref.Tag != "":
		return resolveIn(refs, tagRefs, "tag", ref.Tag)
	case ref.Branch != "":
		return resolveIn(refs, branchRefs, "branch", ref.Branch)
	}
	return resolveHead(refs)
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

func resolveCommit(refs *packp.AdvRefs, commit, branch string) (target, error) {
	if !fullHash.MatchString(commit) {
		return target{}, failure.New(failure.ErrInvalid, "commit %q is not a full hash of 40 lower-case hexadecimal digits", few.Quote(commit))
	}
	t := target{commit: plumbing.NewHash(commit), unlisted: true}
	t.want = t.commit
	if branch != "" {
		tip, err := resolveIn(refs, branchRefs, "branch", branch)
		if err != nil {
			return target{}, err
		}
		t.label, t.tips = tip.label, []plumbing.Hash{tip.commit}
	}
	for name, hash := range refs.References {
		if hash == t.commit {
			t.unlisted = false
		}
		if branch == "" && (strings.HasPrefix(name, branchRefs) || strings.HasPrefix(name, tagRefs)) {
			t.tips = append(t.tips, hash)
		}
	}
	return t, nil
}

func resolveName(refs *packp.AdvRefs, name string) (target, error) {
	t, ok := lookup(refs, name)
	if !ok {
		return target{}, failure.New(failure.ErrNotFound, "the repository has no ref %q: write it in full in Git, such as refs/heads/main", few.Quote(name))
	}
	t.label = name
	return t, nil
}

func resolveIn(refs *packp.AdvRefs, prefix, kind, name string) (target, error) {
	t, ok := lookup(refs, prefix+name)
	if !ok {
		return target{}, failure.New(failure.ErrNotFound, "the repository has no %s %q: check ref in Git", kind, few.Quote(name))
	}
	t.label = name
	if prefix == tagRefs {
		t.tag = name
	}
	return t, nil
}

// annotated returns the annotated tag that is required, zero when none is.
func (t target) annotated() plumbing.Hash {
	if t.withTag && t.tag != "" && t.want != t.commit {
		return t.want
	}
	return plumbing.ZeroHash
}

// lookup finds a ref by its full name and peels an annotated tag.
func lookup(refs *packp.AdvRefs, name string) (target, bool) {
	hash, ok := refs.References[name]
	if !ok && name == headRef && refs.Head != nil {
		hash, ok = *refs.Head, true
	}
	if !ok {
		return target{}, false
	}
	t := target{commit: hash, want: hash}
	if peeled, annotated := refs.Peeled[name]; annotated {
		t.commit = peeled
	}
	return t, true
}

func resolveSemver(refs *packp.AdvRefs, expression string) (target, error) {
	wanted, err := semver.NewConstraint(expression)
	if err != nil {
		return target{}, failure.New(failure.ErrInvalid, "semver %q is not a range of versions, such as \">=1.2.0 <2.0.0\"", few.Quote(expression))
	}
	var names []string
	for name := range refs.References {
		if tag, ok := strings.CutPrefix(name, tagRefs); ok {
			names = append(names, tag)
		}
	}
	// Versions that differ only in build metadata are equal to semver. Then the names decide, so that the result is stable.
	slices.Sort(names)
	var best *semver.Version
	var tag string
	for _, name := range names {
		version, err := versionOf(name)
		if err != nil || !wanted.Check(version) {
			continue
		}
		if best == nil || !version.LessThan(best) {
			best, tag = version, name
		}
	}
	if best == nil {
		return target{}, failure.New(failure.ErrNotFound, "none of the repository's %d tags matches semver %q", len(names), few.Quote(expression))
	}
	return resolveIn(refs, tagRefs, "tag", tag)
}

func resolveHead(refs *packp.AdvRefs) (target, error) {
	for _, symref := range refs.Capabilities.Get(capability.SymRef) {
		if name, branch, _ := strings.Cut(symref, ":"); name == headRef && strings.HasPrefix(branch, branchRefs) {
			return resolveIn(refs, branchRefs, "branch", strings.TrimPrefix(branch, branchRefs))
		}
	}
	if refs.Head == nil {
		return target{}, failure.New(failure.ErrNotFound, "the repository's HEAD names no branch that exists: set ref.branch in Git")
	}
	// HEAD is detached, or an old server does not name its branch: use an existing branch, as git clone does.
	for _, name := range sortedRefs(refs) {
		if branch, ok := strings.CutPrefix(name, branchRefs); ok && refs.References[name] == *refs.Head {
			return resolveIn(refs, branchRefs, "branch", branch)
		}
	}
	return resolveName(refs, headRef)
}

func sortedRefs(refs *packp.AdvRefs) []string {
	names := make([]string, 0, len(refs.References))
	for name := range refs.References {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// HigherVersion reports whether the tag of one revision has a higher version than that of the other, where both were chosen by a range of
// versions such as ref.semver.
func HigherVersion(is, was string) bool {
	newer, _, _ := strings.Cut(is, "@")
	older, _, _ := strings.Cut(was, "@")
	higher, err := versionOf(newer)
	if err != nil {
		return false
	}
	lower, err := versionOf(older)
	return err == nil && higher.GreaterThan(lower)
}

func versionOf(tag string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
}
