// Package progress says how far the cluster has come with a commit, from the states of the objects.
package progress

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The states.
const (
	Pending = "Pending"
	Held    = "Held"
	Refused = "Refused"
	Applied = "Applied"
	Failed  = "Failed"
	Healthy = "Healthy"
	Deleted = "Deleted"
)

// Report says how far the cluster has come with a commit, for one object.
type Report struct {
	Commit   string        `json:"commit"`
	State    string        `json:"state" enum:"Pending,Held,Refused,Applied,Failed,Healthy,Deleted" doc:"Pending: the operator has not got so far. Held: a person has to confirm it. Refused: the operator does not use this version of the file. Applied: it uses it, and the object is not ready yet. Failed: it uses it, and only another change can help. Healthy: the object is ready. Deleted: the object is gone."`
	Message  string        `json:"message,omitempty" doc:"Why, or what it waits for."`
	Problems []FileProblem `json:"problems,omitempty" doc:"Where the files are wrong."`
	At       time.Time     `json:"at,omitzero" doc:"Since when the object is in this state, as far as it is known."`
}

// FileProblem is a problem of a file.
type FileProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty" doc:"As kubeop explain explains it."`
}

// Commit is a commit, and the object whose progress is reported.
type Commit struct {
	Hash string
	// Reached is true once the operator has read the repository at the commit, or at a later one.
	Reached bool
	// File is the path of the file that declares the object, from the root of the repository. Object is the name of the object in lists of held
	// deletions.
	File, Object string
	// Quiet is true if the caller may not see what the Repository reports about itself.
	Quiet bool
}

// object is an object of one of the kinds of kubeop, with its conditions.
type object interface {
	client.Object
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

// Of reports about a commit. repository is the Repository that has it, and of the object, nil if it does not exist.
func Of(c Commit, repository *v1alpha1.Repository, of object) Report {
	r := Report{Commit: c.Hash, State: Pending}
	status := repository.Status
	switch {
	case !c.Reached && status.HeldRevision != "":
		r.State, r.Message = Held, cmp.Or(c.messageOf(repository), "The repository holds its commits until a person confirms them.")
		return r
	case !c.Reached:
		r.Message = "The operator has not read the commit yet."
		return r
	}
	if r.Problems = problemsOf(c.File, status.Problems, of); len(r.Problems) > 0 {
		r.State, r.Message = Refused, "The version of this commit, or of a later one, is not used."
		return r
	}
	synced := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.SyncedCondition)
	if held := heldOf(c.Object, status.Held); held != "" {
		r.State, r.Message = Held, "Its deletion waits until a person confirms it with kubeop confirm repository "+repository.Name+": "+held
		return r
	}
	switch {
	case of == nil && synced:
		r.State = Deleted
	case of == nil:
		r.Message = "The operator has not applied the commit yet."
		if why := c.messageOf(repository); why != "" && meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ReadyCondition) {
			r.Message += " The repository says: " + why
		}
	case of.GetDeletionTimestamp() != nil:
		r.Message = "It is being deleted."
	case !synced && v1alpha1.CommitOf(of.GetAnnotations()[v1alpha1.RevisionAnnotation]) != c.Hash:
		r.Message = c.messageOf(repository)
	default:
		r.ofObject(of)
	}
	return r
}

// ofObject reports about an object whose spec is that of the commit, or of a later one.
func (r *Report) ofObject(of object) {
	conditions := of.GetReconcileStatus().Conditions
	ready := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	r.State = Applied
	if ready == nil || ready.ObservedGeneration != of.GetGeneration() {
		return
	}
	// A commit may change files beside app.yaml, such as manifests, and leave the spec as it is.
	if app, is := of.(*v1alpha1.App); is && !app.StatusIsCurrent(ready) {
		return
	}
	r.Message, r.At = ready.Message, ready.LastTransitionTime.UTC()
	switch {
	case ready.Status == metav1.ConditionTrue:
		r.State = Healthy
	case meta.IsStatusConditionTrue(conditions, v1alpha1.StalledCondition):
		r.State = Failed
	}
}

// problemsOf returns the problems of a file and of what is beside it in its folder.
func problemsOf(file string, lines []string, of object) (all []FileProblem) {
	folder := file[:strings.LastIndex(file, "/")+1]
	for _, line := range lines {
		if p := parse(line); p.File == file || strings.HasPrefix(p.File, folder) && strings.HasSuffix(file, "/app.yaml") {
			all = append(all, p)
		}
	}
	if len(all) > 0 || len(lines) == 0 {
		return all
	}
	// The Repository lists only its first problems. The object names its own.
	var refused *v1alpha1.Refused
	switch of := of.(type) {
	case *v1alpha1.App:
		refused = of.Status.Refused
	case *v1alpha1.Project:
		refused = of.Status.Refused
	}
	if refused != nil {
		all = append(all, parse(refused.Place+": "+refused.Problem))
	}
	return all
}

var problemLine = regexp.MustCompile(`^(.*?)(?::(\d+))?(?::(\d+))?: (.*?)(?: \[([a-z0-9-]+)\])?$`)

// parse parses "file:line:column: why [code]". Only the file and the reason are required.
func parse(text string) FileProblem {
	m := problemLine.FindStringSubmatch(text)
	if m == nil {
		return FileProblem{Message: text}
	}
	p := FileProblem{File: m[1], Message: m[4], Code: m[5]}
	p.Line, _ = strconv.Atoi(m[2])
	p.Column, _ = strconv.Atoi(m[3])
	return p
}

// heldOf returns the line about an object in a list of held deletions, "" if its deletion is not held.
func heldOf(object string, lines []string) string {
	for _, line := range lines {
		if name, _, _ := strings.Cut(line, ":"); name == object {
			return line
		}
	}
	return ""
}

func (c Commit) messageOf(repository *v1alpha1.Repository) string {
	if c.Quiet {
		return ""
	}
	if ready := meta.FindStatusCondition(repository.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		return ready.Message
	}
	return ""
}
