// Package preview decides which branches of a tenant's repository have a preview of a project, under which name, and with which spec and
// hosts. It reads nothing: no network, no cluster, no clock.
package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// infix is between the name of a project and the slug of a branch. maxName is the length of a project's name, hashed that of a hash.
	infix   = "-pr-"
	maxName = 35
	hashed  = 8
	// skew is how far the clocks of people may be ahead.
	skew = 5 * time.Minute
)

var (
	foreign = regexp.MustCompile(`[^a-z0-9]+`)
	// withHash are slugs that may be one with a hash.
	withHash = regexp.MustCompile(`-[0-9a-f]{8}$`)
)

// Name is the project of a branch. It has a hash of the branch if the branch's name is not used as it is, so that two branches share a
// project only if their hashes are equal.
func Name(project, branch string) string {
	room := maxName - len(project) - len(infix)
	slug := strings.Trim(foreign.ReplaceAllString(strings.ToLower(branch), "-"), "-")
	if slug != branch || len(slug) > room || withHash.MatchString(slug) {
		sum := sha256.Sum256([]byte(branch))
		slug = strings.TrimRight(slug[:max(min(len(slug), room-hashed-1), 0)], "-")
		slug = strings.TrimLeft(slug+"-"+hex.EncodeToString(sum[:hashed/2]), "-")
	}
	return project + infix + slug
}

// Matches reports whether a branch matches the pattern.
func Matches(pattern, branch string) bool {
	ok, err := path.Match(pattern, branch)
	return ok && err == nil
}

// Followed is the branch that a Repository follows with a revision; "" if it follows none.
func Followed(repository *v1alpha1.Repository, revision string) string {
	branch, _, named := strings.Cut(revision, "@sha1:")
	ref := repository.Spec.Ref
	if !named || ref != nil && (ref.Tag != "" || ref.SemVer != "" || ref.Commit != "" || ref.Name != "") {
		return ""
	}
	return branch
}

// Number is the project of a pull request.
func Number(project string, pullRequest int64) string {
	return project + infix + strconv.FormatInt(pullRequest, 10)
}

// NumberOf is the number of the pull request that has a project; 0 for another project.
func NumberOf(project, name string) int64 {
	number, err := strconv.ParseInt(strings.TrimPrefix(name, project+infix), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Branch is a branch, or the one of an open pull request into the branch that the Repository follows.
type Branch struct {
	Name, Hash string
	// PullRequest is the number of the pull request; 0 for a branch. Fork: it is a branch of another repository.
	PullRequest int64
	Fork        bool
	// Time of its last commit; zero if it is not known. Failed is why the commit could not be fetched.
	Time   time.Time
	Failed string
}

// Preview is a branch with the name of its project. Missing says why it has none; "" if it has.
type Preview struct {
	Branch
	Project string
	Missing string
}

// Limits say which branches of a project have a preview.
type Limits struct {
	Project string
	Spec    *v1alpha1.ProjectPreviews
	// Main is the hash of the commit that the Repository follows, and Follows its branch; "" for a tag.
	Main, Follows string
	// Declared reports whether the commit declares a project of that name, and Running whether there is a preview of that name now.
	Declared, Running func(project string) bool
	Now               time.Time
}

// Choose decides about the branches that match the pattern, or about the pull requests. Previews that run already come first, then the order is that of the numbers and names. So no
// new branch takes the place of a running preview.
func (l Limits) Choose(branches []Branch) []Preview {
	var all []Preview
	for _, b := range branches {
		switch {
		case l.Spec.PullRequests:
			all = append(all, Preview{Branch: b, Project: Number(l.Project, b.PullRequest)})
		case b.Name != l.Follows && Matches(l.Spec.Branches, b.Name):
			all = append(all, Preview{Branch: b, Project: Name(l.Project, b.Name)})
		}
	}
	l.sort(all)
	taken := map[string]string{}
	left := l.Spec.Most()
	for i := range all {
		p := &all[i]
		if p.Missing = l.missing(p, taken[p.Project]); p.Missing != "" {
			continue
		}
		if left == 0 {
			p.Missing = fmt.Sprintf("there are %d previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max", l.Spec.Most())
			continue
		}
		left--
		taken[p.Project] = p.Name
	}
	return all
}

// sort sorts running previews before others, and then by the number and the branch.
func (l Limits) sort(all []Preview) {
	rank := func(p Preview) int {
		if l.Running(p.Project) {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b Preview) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.PullRequest, b.PullRequest), strings.Compare(a.Name, b.Name))
	})
}

// missing says why a branch has no preview, whatever their number is. taken is another branch with the same project.
func (l Limits) missing(p *Preview, taken string) string {
	age := l.Now.Sub(p.Time)
	switch {
	case p.Fork:
		return "the pull request is from a fork, and anybody may open one: push its branch to this repository"
	case p.Hash == l.Main:
		return "the branch has no commits of its own"
	case l.Declared(p.Project):
		return fmt.Sprintf("the repository declares a project %s itself: rename the branch or the project in Git", p.Project)
	case taken != "":
		return fmt.Sprintf("branch %s has the same project %s: rename one of the two in Git", taken, p.Project)
	case p.Failed != "" && l.Running(p.Project): // It keeps its place until its commit is known.
		return ""
	case p.Failed != "":
		return p.Failed
	case age > l.Spec.Lasts():
		return fmt.Sprintf("its last commit is older than spec.previews.ttl of %s: push to it again", l.Spec.Lasts())
	case age < -skew:
		return "its last commit has a date in the future, so ttl cannot end: correct the clock, and commit again in Git"
	}
	return ""
}
