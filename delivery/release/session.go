package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// session is one action on one release.
type session struct {
	// ctx carries the values of the call that began the action, and ends with nothing.
	ctx   context.Context
	pass  *pass
	plan  decide.Decision
	state decide.State
	// gate is where what was rendered passes.
	gate *manifest.Gate
	// chart is the one to be released, and values are those with which it is.
	chart  *chart.Chart
	values map[string]any
	// plain is what the chart renders to, as a chart that Helm's action installs.
	plain *chart.Chart
	// unanswered are the errors of templates' lookups.
	unanswered []error
	// idle runs what needs no worker without one.
	idle    func(func() error) error
	conn    *cluster.Connection
	config  *action.Configuration
	records *records.Driver
	fence   *fence.Fence
	log     lines
}

// open prepares an action. It may have waited for a worker: check says whether the release is still as it was.
func (p *pass) open(ctx context.Context, at *place, plan decide.Decision) (*session, error) {
	s := &session{ctx: ctx, pass: p, plan: plan, idle: at.idle, gate: manifest.NewGate(p.request.Admit, p.request.Refused, p.request.PostRenderers, p.request.CommonMetadata)}
	s.fence = fence.New(p.engine.opts.Now, s.look)
	req := p.request
	req.fence = s.fence
	var err error
	if s.conn, err = p.engine.dial(req); err != nil {
		return nil, err
	}
	if s.state, err = p.engine.index(ctx, p.request); err != nil {
		return nil, err
	}
	s.records = records.NewDriver(ctx, p.engine.records(s.conn, p.request, &p.slot.memory), s.fence, s.state)
	s.records.Asks = records.Asks{Create: s.beforeCreate, Weigh: s.weigh, Later: s.later, Proven: p.want.Proven}
	if s.config, err = s.conn.Configuration(s.records); err != nil {
		return nil, err
	}
	s.config.Log = s.logf
	s.setTerms(at)
	return s, nil
}

// setTerms tells the client how this action is done.
func (s *session) setTerms(at *place) {
	c := s.conn.Client
	how := s.how()
	c.Log = s.logf
	c.Terms = cluster.Terms{Idle: at.idle, Superseded: s.pass.slot.superseded, Force: how.Force, Timeout: s.within(how.Timeout), App: s.pass.want.App, Lenient: how.DisableOpenAPIValidation}
	c.Terms.TakeOwnership = how.TakeOwnership && (s.plan.Act == decide.Install || s.plan.Act == decide.Upgrade)
	last := s.state.Last()
	if last == nil {
		return
	}
	c.Terms.Wary = last.Status == helm.StatusFailed && (s.plan.Act == decide.Rollback || s.state.Deployed() == nil)
	// What a failed attempt left is not what the deployed revision says.
	changes := s.plan.Act == decide.Upgrade || s.plan.Act == decide.Uninstall
	if changes && last.Status == helm.StatusDeployed && s.pass.request.knows(last) {
		c.Terms.Unmoved = s.pass.request.Unmoved
	}
}

// setRan tells the client the hooks that the revisions at hand ran.
func (s *session) setRan() error {
	c := s.conn.Client
	c.Terms.Ran = map[manifest.Identity]bool{}
	for _, h := range s.records.Revisions() {
		for _, hook := range h.Hooks {
			if hook.LastRun.StartedAt.IsZero() {
				continue
			}
			docs, err := manifest.Parse(hook.Manifest)
			if err != nil {
				return fmt.Errorf("reading the hooks of revision %d: %w", h.Version, err)
			}
			for _, u := range manifest.Objects(docs) {
				c.Terms.Ran[c.Release.Identify(u)] = true
			}
		}
	}
	return nil
}

// how the action is to be done.
func (s *session) how() v1alpha1.HelmAction {
	if s.plan.Act == decide.Install {
		return s.pass.request.Actions.Install.HelmAction
	}
	return s.pass.request.Actions.Upgrade.HelmAction
}

// look returns the version of a record, nothing when it is gone.
func (s *session) look(ctx context.Context, record string) (string, error) {
	secret, err := s.conn.Secrets.Get(ctx, record, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return secret.ResourceVersion, nil
}

// later says which records Helm is not to write. What an action failed with is known, with its class, only when it has
// ended; and of an uninstallation or a test only the end is worth a write.
func (s *session) later(rel *helm.Release) bool {
	switch s.plan.Act {
	case decide.Uninstall, decide.Probe:
		return rel.Version == s.state.Last().Number
	}
	return rel == s.records.Made && rel.Info.Status == helm.StatusFailed
}

// objects of the release in the cluster.
func (s *session) objects() cluster.Objects {
	return cluster.Objects{Client: s.conn.Client, Release: s.pass.request.key(), App: s.pass.want.App}
}

// guardData fails if what goes with this action owns claims that hold data.
func (s *session) guardData(text string) error {
	var revisions []*helm.Release
	for _, v := range []*decide.Revision{s.state.Deployed(), s.state.Last()} {
		if v != nil && s.records.IsLoaded(v.Number) {
			revisions = append(revisions, s.revision(v.Number))
		}
	}
	return s.objects().GuardData(revisions, text, func() (map[types.UID][]string, error) { return s.pass.request.Owned(s.ctx) })
}

// revision returns a loaded revision.
func (s *session) revision(number int) *helm.Release { return s.records.Revision(number) }

// end turns the error of an action into its result. Helm's own error is mostly text; those of the client and of storage
// have their types.
func (s *session) end(err error) result {
	switch {
	case s.fence.IsShut():
		return result{err: fault.ErrFenced, world: true}
	case errors.Is(err, records.ErrAgain):
		return result{}
	}
	s.gate.Storage = s.records.Broken
	if err == nil {
		err = s.gate.Storage
	}
	if err == nil {
		return result{stored: true}
	}
	failure := s.gate.Classify(s.explained(err), s.pass.request.Sensitive)
	return result{err: failure, world: s.worlds(err, failure), log: s.log.of(true, s.pass.request.Sensitive)}
}

// worlds is whether the failure says nothing about the input.
func (s *session) worlds(err, failure error) bool {
	if s.gate.Unjudged != nil {
		return true
	}
	if errors.Is(failure, fault.ErrRender) || errors.As(failure, new(*fault.NotAllowed)) {
		return false
	}
	if s.gate.Storage != nil || fault.Worldly(err) {
		return true
	}
	return fault.Worldly(s.conn.Client.Faults.All())
}

// explained adds to Helm's summary the errors it swallowed.
func (s *session) explained(err error) error {
	failed := s.conn.Client.DeletionFailed()
	if err == nil || failed == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, failed)
}

func (s *session) logf(format string, args ...any) {
	s.log.add(fmt.Sprintf(format, args...))
	s.pass.engine.logf(format, args...)
}

// maxLines is how many of Helm's last lines are kept.
const maxLines = 10

// lines are what Helm said last. An action speaks from several goroutines.
type lines struct {
	mu   sync.Mutex
	last []string
	// warned are the API server's warnings, each once.
	warned []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line = strings.TrimSpace(line)
	l.last = append(l.last, line)
	l.last = l.last[max(0, len(l.last)-maxLines):]
	if strings.HasPrefix(line, cluster.WarningPrefix) && len(l.warned) < maxLines && !slices.Contains(l.warned, line) {
		l.warned = append(l.warned, line)
	}
}

// of a failed action are its last lines; of another one the warnings.
func (l *lines) of(failed bool, sensitive []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.warned
	if failed {
		said = l.last
	}
	out := make([]string, len(said))
	for i, line := range said {
		out[i] = fault.Brief(fault.Plain(errors.New(line), sensitive)).Error()
	}
	return out
}
