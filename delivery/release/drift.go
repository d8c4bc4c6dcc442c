package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Ref names an object of a release; the namespace of a cluster's object is empty.
type Ref struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// Difference is an object that is not as the deployed revision has it.
type Difference struct {
	// Object as "Kind/name".
	Object string
	// Missing: it is not there.
	Missing bool
	// Fields that differ, sorted by path, at most 20; none when it is missing.
	Fields []Change
	// Applied is what correcting it came to; nil when it was not corrected.
	Applied *Applied
}

// Change is a field that differs.
type Change = differ.Change

// Drift compares the suspects, those of them that are objects of the deployed revision, with its manifest, and corrects
// them if it is told to: object by object, without a revision. Only fields that the chart sets count, and only as the API server
// understands them: it is asked what it would make of the difference. Fields that req.Ignore names, and
// those set through the scale subresource, do not count. It blocks for a few
// requests per suspect, and fails with ErrLocked while an action runs. Differences come back beside an error, which is
// about the objects that could not be compared or corrected.
func (e *Engine) Drift(ctx context.Context, req Request, suspects []Ref, correct bool) ([]Difference, error) {
	if err := errors.Join(req.check(), ctx.Err()); err != nil {
		return nil, err
	}
	ignore, err := differ.ReadRules(req.Ignore)
	if err != nil {
		return nil, fault.Render(err)
	}
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.action != decide.Settled {
		return nil, fmt.Errorf("%w: kubeop is %s it", fault.ErrLocked, slot.action)
	}
	conn, err := e.dial(req)
	if err != nil {
		return nil, err
	}
	want, err := e.suspected(ctx, req, conn, suspects)
	if err != nil {
		return nil, fault.Brief(fault.Plain(err, req.Sensitive))
	}
	conn.client.terms.app = decide.LabelValue(req.App.Name)
	l := look{client: conn.client, ignore: ignore, correct: correct, sensitive: req.Sensitive}
	found, err := l.all(ctx, want)
	return found, fault.Brief(fault.Plain(err, req.Sensitive))
}

// suspected returns the suspects as the deployed revision has them.
func (e *Engine) suspected(ctx context.Context, req Request, conn *connection, suspects []Ref) ([]*unstructured.Unstructured, error) {
	s, err := e.index(ctx, req)
	if err != nil || s.Deployed() == nil {
		return nil, err
	}
	rel, err := payload(ctx, conn, req.Name, s.Deployed().Number)
	if err != nil {
		return nil, err
	}
	if err := decide.CheckGenuine(rel); err != nil {
		return nil, err
	}
	all, _, err := e.manifestObjects(rel)
	if err != nil {
		return nil, err
	}
	asked := map[manifest.Identity]bool{}
	for _, ref := range suspects {
		asked[manifest.IdentityOf(ref.GroupKind(), cmp.Or(ref.Namespace, req.Namespace), ref.Name)] = true
	}
	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return !asked[manifest.Identify(u, req.Namespace)] }), nil
}

// look compares objects with what is there.
type look struct {
	client    *helmClient
	ignore    differ.Rules
	correct   bool
	sensitive []string
}

func (l *look) all(ctx context.Context, want []*unstructured.Unstructured) ([]Difference, error) {
	found := make([]*Difference, len(want))
	errs := make([]error, len(want))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, u := range want {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer fault.Recovered("comparing "+u.GetKind()+"/"+u.GetName(), &errs[i])
			if errs[i] = ctx.Err(); errs[i] == nil {
				found[i], errs[i] = l.one(u)
			}
		})
	}
	all.Wait()
	var out []Difference
	for _, d := range found {
		if d != nil {
			out = append(out, *d)
		}
	}
	return out, fault.Join(errs...)
}

// one compares one object. It returns a difference beside an error when it could not be corrected.
func (l *look) one(u *unstructured.Unstructured) (*Difference, error) {
	want := l.client.claimed(u)
	info, err := l.client.info(want)
	if err != nil {
		return nil, err
	}
	ch := &change{client: l.client, info: info, want: want, before: want, phase: "upgrade"}
	for range maxMoves {
		live, err := ch.get()
		if apierrors.IsNotFound(err) {
			return l.missing(ch)
		}
		if err != nil {
			return nil, named(info, err)
		}
		d, err := l.compare(ch, want, live)
		if !errors.Is(err, errMoved) {
			return d, named(info, err)
		}
	}
	return nil, named(info, errMoved)
}

// maxMoves bounds how often an object that others write meanwhile is looked at again.
const maxMoves = 5

var errMoved = errors.New("it changes all the time, so it could not be compared")

// compare compares an object with what is there, or fails with errMoved.
func (l *look) compare(ch *change, want, live *unstructured.Unstructured) (*Difference, error) {
	if app := l.client.anotherApp(live); app != "" {
		return nil, &foreign{object: nameOf(ch.info), app: app}
	}
	masks, all := l.ignore.Spared(live)
	if all || terminating(live) {
		return nil, nil
	}
	ch.want = differ.Yielding(want, live, append(masks, scaled(live)...))
	p, err := threeWay(ch.want, ch.want, live)
	if err != nil || p.empty() {
		return nil, err
	}
	fields, err := l.preview(ch, p, live)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	d := &Difference{Object: nameOf(ch.info), Fields: fields}
	if !l.correct {
		return d, nil
	}
	return d, l.send(ch, p, want, d)
}

func (l *look) missing(ch *change) (*Difference, error) {
	if _, all := l.ignore.Spared(ch.want); all {
		return nil, nil
	}
	d := &Difference{Object: nameOf(ch.info), Missing: true}
	if !l.correct {
		return d, nil
	}
	if err := ch.create(); err != nil {
		return d, named(ch.info, err)
	}
	done := appliedAs(ch.want, ch.live)
	d.Applied = &done
	return d, nil
}

// preview asks the API server what it would make of the patch, and returns what that changes. A dry run answers with the version
// it began from: when that is another than the one read, the difference would be somebody else's write.
func (l *look) preview(ch *change, p patch, live *unstructured.Unstructured) ([]Change, error) {
	o, err := helper(ch.info).DryRun(true).Patch(ch.info.Namespace, ch.info.Name, p.kind, p.data, nil)
	if err != nil {
		return nil, fmt.Errorf("asking what would change: %w", err)
	}
	then, err := unstructuredOf(o)
	if err != nil {
		return nil, err
	}
	if then.GetResourceVersion() != live.GetResourceVersion() {
		return nil, errMoved
	}
	return differ.Compare(then, live, mask.Of(l.sensitive)), nil
}

func (l *look) send(ch *change, p patch, want *unstructured.Unstructured, d *Difference) error {
	o, err := helper(ch.info).Patch(ch.info.Namespace, ch.info.Name, p.kind, p.data, nil)
	if err != nil {
		return err
	}
	live, err := unstructuredOf(o)
	if err != nil {
		return err
	}
	done := appliedAs(want, live)
	d.Applied = &done
	return nil
}
