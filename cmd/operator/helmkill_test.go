package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	kills = 40
	// kept is how many revisions of a release Helm keeps.
	kept = 5
)

// What a commit does to a release.
const (
	installs   = "install"
	upgrades   = "upgrade"
	rollsback  = "rollback"
	uninstalls = "uninstall"
)

// course is the cycle of steps of every release. Each release begins at another step, so that each kill interrupts all kinds of steps.
var course = []string{installs, upgrades, rollsback, upgrades, uninstalls}

// hooked is a template with objects that stay, objects that only this round has, and a hook of every kind. Each contains its round and revision.
const hooked = `{{- range $i := until 7 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ $i }}}
data: {round: "%[1]d"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-of-%[1]d-{{ $i }}}
data: {round: "%[1]d"}
{{- end }}
{{- range $event := list "pre-install" "post-install" "pre-upgrade" "post-upgrade" "pre-rollback" "post-rollback" "pre-delete" "post-delete" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-{{ $event }}
  annotations:
    helm.sh/hook: {{ $event }}
    helm.sh/hook-delete-policy: before-hook-creation{{ if hasSuffix "-delete" $event }},hook-succeeded{{ end }}
data: {round: "%[1]d", revision: "{{ $.Release.Revision }}"}
{{- end }}
`

// each is how many objects a revision has.
const each = 14

// refused is an object that the API server rejects, after it accepted the others.
const refused = "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: [{port: 70000}]}\n"

// TestKilledOperatorsFinishHelmReleasesWithoutNeedlessRevisions kills the operator while it installs, upgrades, rolls back and uninstalls releases with hooks, all at the
// same time. Each time the next operator finishes the work, without needless revisions. Every hook has run for its own revision. The content is
// that of Git or, after a bad upgrade, that of the last good commit. No other objects are left.
func TestKilledOperatorsFinishHelmReleasesWithoutNeedlessRevisions(t *testing.T) {
	f := newFleet(t)
	operator := f.start(f.settings...)
	f.ship(0)
	f.settle(0, f.snapshot())
	f.caught = map[string]int{}
	for round := 1; round <= kills; round++ {
		f.ship(round)
		when := f.awaitKillTime(round)
		f.kill(operator)
		found := f.snapshot()
		t.Logf("kill %d, %s: %s", round, when, f.describe(round, found))
		back := time.Now()
		operator = f.start(f.settings...)
		f.settle(round, found)
		t.Logf("the next operator was done %s later", time.Since(back).Round(time.Millisecond))
		if t.Failed() {
			break
		}
	}
	f.kill(operator)
	t.Logf("actions that a kill interrupted: %v", f.caught)
	for _, status := range phases {
		if f.caught[status] < 3 && !t.Failed() {
			t.Errorf("only %d kills fell into %s", f.caught[status], status)
		}
	}
}

// fleet is a set of releases, managed by an operator that the test kills.
type fleet struct {
	*killed
	settings []string
	ships    []*ship
	// caught counts the actions that a kill interrupted, by Helm's status.
	caught map[string]int
}

// ship is the state of a release when the operator last had finished its work.
type ship struct {
	name string
	// good is the round of the input that was last released successfully, or none if the release does not exist.
	good     int
	revision int
	first    string
	// ran are the hooks that ran last.
	ran map[string]types.UID
}

const none = -1

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{killed: newKilled(t, "fleet"), settings: []string{"HELM_WORKERS=16"}, caught: map[string]int{}}
	for i := range course {
		f.ships = append(f.ships, &ship{name: fmt.Sprintf("r%d", i), good: none})
	}
	f.repo.Push(map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile})
	return f
}

// step returns what a round does to a release. Round 0 installs all releases except the one that round 1 installs.
func (f *fleet) step(round, i int) string {
	if round == 0 {
		if i == len(course)-1 {
			return "" // Round 1 installs it.
		}
		return installs
	}
	return course[(round+i)%len(course)]
}

// ship pushes a round and requests a reconciliation of the repository.
func (f *fleet) ship(round int) {
	f.t.Helper()
	files := map[string]string{}
	for i, s := range f.ships {
		folder := "projects/shop/apps/" + s.name
		content := fmt.Sprintf(hooked, round)
		switch f.step(round, i) {
		case uninstalls:
			files[folder] = "-"
			continue
		case "":
			continue
		case rollsback:
			content += refused
		}
		files[folder+"/app.yaml"] = fmt.Sprintf(app, s.name, "{type: Helm, helm: {path: chart, remediation: {retries: 0}}}")
		files[folder+"/chart/Chart.yaml"] = chart
		files[folder+"/chart/templates/all.yaml"] = content
	}
	f.commit = f.repo.Push(files)
	repository := &v1alpha1.Repository{}
	f.eventually("the push is noticed", func() error {
		if err := f.Get(f.t.Context(), client.ObjectKey{Name: "fleet"}, repository); err != nil {
			return err
		}
		before := repository.DeepCopy()
		repository.Annotations = map[string]string{meta.ReconcileRequestAnnotation: fmt.Sprint(round)}
		return f.Patch(f.t.Context(), repository, client.MergeFrom(before))
	})
}

// phases are the statuses of a release during an action.
var phases = []string{"pending-install", "pending-upgrade", "uninstalling", "pending-rollback"}

// awaitKillTime waits until it is time to kill the operator: a random time into one of the phases, in turn, or after the push.
func (f *fleet) awaitKillTime(round int) string {
	n := round % (len(phases) + 1)
	if n == len(phases) {
		after := time.Duration(rand.IntN(2000)) * time.Millisecond
		time.Sleep(after)
		return fmt.Sprintf("%s after the push", after)
	}
	// Mostly short, because an action takes about a hundred milliseconds and the kill should interrupt it.
	after := time.Duration(rand.IntN(16)*rand.IntN(16)) * time.Millisecond
	for range 500 {
		if f.underWay(phases[n]) {
			time.Sleep(after)
			return fmt.Sprintf("%s into %s", after, phases[n])
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "after " + phases[n] + " was over"
}

// underWay reports whether any release has the status.
func (f *fleet) underWay(status string) bool {
	f.t.Helper()
	list := &corev1.SecretList{}
	if err := f.List(f.t.Context(), list, client.InNamespace(f.namespace), client.MatchingLabels{"owner": "helm", "status": status}); err != nil {
		f.t.Fatal(err)
	}
	return len(list.Items) > 0
}

// describe returns the phase in which each release was found.
func (f *fleet) describe(round int, found snapshot) string {
	var out []string
	for i, s := range f.ships {
		state := "not there"
		if r := found.newest(s.name); r.number > 0 {
			state = fmt.Sprintf("%s v%d", r.status, r.number)
			f.caught[r.status]++
		}
		out = append(out, fmt.Sprintf("%s %s %s", s.name, f.step(round, i), state))
	}
	return strings.Join(out, ", ")
}

// settle waits until every release has the state that the round declares, and checks how the actions that the kill interrupted ended.
func (f *fleet) settle(round int, found snapshot) {
	f.t.Helper()
	var now snapshot
	f.eventually(fmt.Sprintf("round %d is delivered", round), func() error {
		now = f.snapshot()
		var errs []error
		for i, s := range f.ships {
			errs = append(errs, f.arrived(s, f.step(round, i), now))
		}
		return errors.Join(errs...)
	})
	for i, s := range f.ships {
		if err := f.check(s, f.step(round, i), round, found, now); err != nil {
			f.t.Errorf("round %d, %s: %s: %v; it was killed with %v and has now %v", round, s.name, f.step(round, i), err, found.revisions[s.name], now.revisions[s.name])
		}
	}
}

// arrived returns nil once the release has the state that the step declares.
func (f *fleet) arrived(s *ship, step string, now snapshot) error {
	app, newest := now.apps[s.name], now.newest(s.name)
	switch {
	case step == "", step == uninstalls && app == nil && newest.number == 0:
		return nil
	case app == nil || step == uninstalls:
		return fmt.Errorf("%s: %s: %v", s.name, step, newest)
	case step == rollsback && app.Status.LastAttemptedRevision == f.commit && conditions.IsTrue(app, v1alpha1.RemediatedCondition):
		return nil
	case step != rollsback && app.Status.LastAppliedRevision == f.commit && conditions.IsReady(app):
		return nil
	}
	return fmt.Errorf("%s: %s: %v: %+v", s.name, step, newest, app.Status)
}

// check compares a release that has arrived with its state before, and with the state in which the kill left it.
func (f *fleet) check(s *ship, step string, round int, found, now snapshot) error {
	was := *s
	switch step {
	case "":
		return nil
	case uninstalls:
		*s = ship{name: s.name, good: none, ran: s.ran}
		return now.gone(s.name)
	case installs, upgrades:
		s.good = round
	}
	s.revision, s.first = now.newest(s.name).number, now.newest(s.name).first
	s.ran = now.hooks(s.name)
	return errors.Join(
		now.history(s.name),
		now.content(s.name, s.good),
		rightRevision(was, step, found.revisions[s.name], s.revision),
		rightTarget(was, step, now.newest(s.name)),
		oneInstall(was, *s, step),
		hooksRan(was, *s, step, now),
	)
}

// rightRevision checks that there is no needless revision: an action that a kill interrupted is repeated, a finished one is not.
func rightRevision(was ship, step string, found []revision, newest int) error {
	last := revision{number: was.revision}
	if len(found) > 0 {
		last = found[len(found)-1]
	}
	begun, pending := last.number > was.revision, strings.HasPrefix(last.status, "pending")
	want := was.revision + 1
	switch {
	case pending:
		want = last.number + 1
	case begun:
		want = last.number
	}
	// A bad upgrade creates one revision, and the rollback another.
	if step == rollsback && (!begun || last.status == "pending-upgrade" || last.status == "failed") {
		want++
	}
	if newest != want {
		return fmt.Errorf("the newest revision is %d, want %d", newest, want)
	}
	return nil
}

// rightTarget checks that a rollback returned to the revision that was deployed before the bad upgrade, however often it was repeated.
func rightTarget(was ship, step string, newest revision) error {
	if want := fmt.Sprintf("Rollback to %d", was.revision); step == rollsback && newest.why != want {
		return fmt.Errorf("the newest revision is a %q, want a %q", newest.why, want)
	}
	return nil
}

// oneInstall checks that no existing release was installed again.
func oneInstall(was, is ship, step string) error {
	const hook = "pre-install"
	if step == installs {
		if was.ran[hook] == is.ran[hook] {
			return errors.New("it was installed without its hooks")
		}
		return nil
	}
	if was.first != is.first || was.ran[hook] != is.ran[hook] {
		return fmt.Errorf("it was installed a second time: first %s, now %s", was.first, is.first)
	}
	return nil
}

// hooksRan checks that the action's hooks ran for its revision.
func hooksRan(was, is ship, step string, now snapshot) error {
	for _, when := range []string{"pre-", "post-"} {
		hook := when + step
		if is.ran[hook] == "" || is.ran[hook] == was.ran[hook] {
			return fmt.Errorf("hook %s did not run", hook)
		}
		// In a chart every installation has revision 1. A rollback runs the hooks of the revision to which it returns.
		if got := now.maps[is.name+"-"+hook].Data["revision"]; step == upgrades && got != fmt.Sprint(is.revision) {
			return fmt.Errorf("hook %s ran last for revision %s, not %d", hook, got, is.revision)
		}
	}
	return nil
}

// history checks that one revision is deployed, none is pending, and none is missing.
func (s snapshot) history(name string) error {
	revisions := s.revisions[name]
	newest := s.newest(name)
	if len(revisions) != min(newest.number, kept) {
		return fmt.Errorf("%d revisions are kept up to %d", len(revisions), newest.number)
	}
	for i, r := range revisions {
		switch {
		case r.number != revisions[0].number+i:
			return fmt.Errorf("revision %d is lost", revisions[0].number+i)
		case r == newest && r.status != "deployed", r != newest && r.status != "superseded" && r.status != "failed":
			return fmt.Errorf("revision %d is %s", r.number, r.status)
		}
	}
	return nil
}

// content checks that the objects are exactly those of a round.
func (s snapshot) content(name string, round int) error {
	count := 0
	for _, o := range s.maps {
		if !strings.HasPrefix(o.Name, name+"-") || o.Annotations["helm.sh/hook"] != "" {
			continue
		}
		count++
		if o.Data["round"] != fmt.Sprint(round) {
			return fmt.Errorf("%s is of round %s, not %d", o.Name, o.Data["round"], round)
		}
	}
	if count != each {
		return fmt.Errorf("%d objects are there, not %d", count, each)
	}
	return nil
}

// gone checks that no objects are left, except for the hooks that Helm keeps.
func (s snapshot) gone(name string) error {
	for _, o := range s.maps {
		hook := o.Annotations["helm.sh/hook"]
		if strings.HasPrefix(o.Name, name+"-") && (hook == "" || strings.HasSuffix(hook, "-delete")) {
			return fmt.Errorf("%s is left over", o.Name)
		}
	}
	return nil
}

// hooks returns the UIDs of a release's hooks by event.
func (s snapshot) hooks(name string) map[string]types.UID {
	out := map[string]types.UID{}
	for _, o := range s.maps {
		if hook := o.Annotations["helm.sh/hook"]; hook != "" && strings.HasPrefix(o.Name, name+"-") {
			out[hook] = o.UID
		}
	}
	return out
}

func (s snapshot) newest(name string) revision {
	if all := s.revisions[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return revision{}
}
