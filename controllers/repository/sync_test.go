package repository

import (
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/gitops/tree"
)

// TestTheFirstReadingOfAllTenantsIsAnnounced: once for a commit that the status does not know, and never for a tenant's repository, of
// which limits bound the files.
func TestTheFirstReadingOfAllTenantsIsAnnounced(t *testing.T) {
	const revision = "main@sha1:1"
	for name, tt := range map[string]struct {
		change func(*scope)
		want   bool
	}{
		"a first commit":                    {func(*scope) {}, true},
		"a commit that came while stopped":  {func(s *scope) { s.repository.Status.LastAttemptedRevision = "main@sha1:0" }, true},
		"the commit of the last process":    {func(s *scope) { s.repository.Status.LastAttemptedRevision = revision }, false},
		"a commit after one that was read":  {func(s *scope) { s.progress.tree = &tree.Tree{} }, false},
		"a tenant's repository":             {func(s *scope) { s.repository.Spec.Tenant = "acme" }, false},
		"a commit that has been announced":  {func(s *scope) { s.progress.announced = revision }, false},
		"a newer one before that was ended": {func(s *scope) { s.progress.announced = "main@sha1:0" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{repository: &v1alpha1.Repository{}, progress: newProgress()}
			s.commit.Revision = revision
			tt.change(s)
			err := s.announce()
			if told := err != nil && step.Waits(err) && strings.Contains(err.Error(), "reading the files of "+revision); told != tt.want {
				t.Errorf("got %v, want an announcement: %t", err, tt.want)
			}
			if err := s.announce(); err != nil {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

// TestAFailureIsReportedUntilTheRemoteAnswers: also by a process that has not asked it to the end yet, but not after the spec changed.
func TestAFailureIsReportedUntilTheRemoteAnswers(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.FetchedCondition, Status: status, Reason: "R", ObservedGeneration: generation}}
	}
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		told       bool
	}{
		"nothing is known":           {nil, true},
		"it failed":                  {condition(metav1.ConditionFalse, 2), false},
		"it failed with an old spec": {condition(metav1.ConditionFalse, 1), true},
		"it was fetched":             {condition(metav1.ConditionTrue, 2), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{repository: &v1alpha1.Repository{}}
			s.repository.Generation = 2
			s.repository.SetConditions(tt.conditions)
			if told := s.unanswered().Error() != step.Soon(0).Error(); told != tt.told {
				t.Errorf("it is told anew: %t, want %t", told, tt.told)
			}
		})
	}
}

// TestWhatIsFetchedIsNamedByItsRef, and only a semver range that nothing overrides selects tags that need not descend from each other.
func TestWhatIsFetchedIsNamedByItsRef(t *testing.T) {
	for name, c := range map[string]struct {
		ref      *sourcev1.GitRepositoryRef
		want     string
		bySemver bool
	}{
		"none":                {nil, "u", false},
		"empty":               {&sourcev1.GitRepositoryRef{}, "u", false},
		"a branch":            {&sourcev1.GitRepositoryRef{Branch: "main"}, "u branch=main", false},
		"a tag":               {&sourcev1.GitRepositoryRef{Tag: "v1"}, "u tag=v1", false},
		"a range":             {&sourcev1.GitRepositoryRef{SemVer: ">1"}, "u semver=>1", true},
		"a range of a branch": {&sourcev1.GitRepositoryRef{SemVer: ">1", Branch: "main"}, "u semver=>1 branch=main", true},
		"a commit, and range": {&sourcev1.GitRepositoryRef{SemVer: ">1", Commit: "c"}, "u commit=c semver=>1", false},
		"a name, and range":   {&sourcev1.GitRepositoryRef{SemVer: ">1", Name: "refs/x"}, "u name=refs/x semver=>1", false},
		"a name":              {&sourcev1.GitRepositoryRef{Name: "refs/x"}, "u name=refs/x", false},
	} {
		repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{URL: "u"}}
		repository.Spec.Ref = c.ref
		if got := sourceOf(repository); got != c.want || bySemver(repository) != c.bySemver {
			t.Errorf("%s: %q, by range %t, want %q, %t", name, got, bySemver(repository), c.want, c.bySemver)
		}
	}
}

// TestACommitIsComparedWithTheLastOneOfTheSameSource, unless the spec allows any history.
func TestACommitIsComparedWithTheLastOneOfTheSameSource(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Repository)
		want   bool
	}{
		"the same source":        {func(*v1alpha1.Repository) {}, true},
		"a source of before":     {func(r *v1alpha1.Repository) { r.Status.Source = "" }, true},
		"another source":         {func(r *v1alpha1.Repository) { r.Status.Source = "other" }, false},
		"no commit before":       {func(r *v1alpha1.Repository) { r.Status.LastAttemptedRevision = "" }, false},
		"any history is allowed": {func(r *v1alpha1.Repository) { r.Spec.History = v1alpha1.HistoryAny }, false},
	} {
		repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{URL: "u"}}
		repository.Status.LastAttemptedRevision, repository.Status.Source = "main@sha1:1", "u"
		c.change(repository)
		if got := compared(repository); got != c.want {
			t.Errorf("%s: compared %t, want %t", name, got, c.want)
		}
	}
}
