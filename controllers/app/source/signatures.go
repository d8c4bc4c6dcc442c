package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/signed"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/cosign"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/podspec"
	"github.com/kubeop/kubeop/delivery/policy"
)

// Signatures verifies who signed images, charts and artifacts.
type Signatures struct {
	Cosign *cosign.Verifier
	// Signed lists the images that are signed; nil to list none.
	Signed *signed.Images

	waiting subject.Memory[signatureMemory]
}

// Verified is the answer of a registry about an image that is signed as a policy wants it.
type Verified struct{}

// verifyWithin bounds one verification, which is a few small requests.
const verifyWithin = time.Minute

// signatureMemory is what an App waits for between Reconciles. Helm actions run beside the Reconcile.
type signatureMemory struct {
	mu sync.Mutex
	// unsigned are the images of its objects that have no signature that counts, and freed is how often one of them was signed later.
	unsigned []unsigned
	freed    int
	// rules identifies the rules by which what the App already delivered was verified.
	rules string
}

// unsigned is an image without a signature that counts.
type unsigned struct {
	guardrails.Unverified
	why string
}

// Verify verifies the signatures of the images of an App's objects that policies want to be signed, and lists those that have them in the Guardrails of
// the project. It sets Guardrails of the subject, with the signed images. The error says how the step ends: it waits for a registry or for the
// Guardrails, or a registry cannot be asked, which is no verdict about its images.
func (f *Fetcher) Verify(ctx context.Context, s *subject.Subject, objects []*unstructured.Unstructured) error {
	without, err := f.verify(ctx, s, objects)
	if err == nil {
		m := f.waiting.Get(s.App)
		m.mu.Lock()
		m.unsigned = without
		m.mu.Unlock()
	}
	return err
}

// verify does what Verify says, and returns the images for which it found no valid signature, with the reasons.
func (f *Fetcher) verify(ctx context.Context, s *subject.Subject, objects []*unstructured.Unstructured) (without []unsigned, err error) {
	if !guardrails.Verifies(s.Guardrails) {
		return nil, nil
	}
	rules, err := f.rules(ctx, s)
	if err != nil {
		return nil, err
	}
	if n := f.ask(s, objects); n > v1alpha1.MaxSignedImages {
		return nil, step.Stop(v1alpha1.TooLargeReason, fmt.Errorf("the app has %d images that policies want to be signed, and may have %d: split it in Git", n, v1alpha1.MaxSignedImages))
	}
	p, good := &pass{Subject: s}, []signed.Verified(nil)
	var waits, failed error
	for _, u := range policy.Unverified(objects, rules) {
		err := f.verified(ctx, p, u, nil)
		switch {
		case err == nil:
			good = append(good, signed.Verified{Signatures: u.Signatures, Image: u.Image()})
		case errors.As(err, new(*cache.Unanswered)):
			waits = fmt.Errorf("verifies the signatures of image %s", u.Image())
		case u.Action == v1alpha1.DenyAction && !errors.Is(err, failure.ErrSignature):
			failed = fmt.Errorf("verifying the signatures of image %s, which is tried again: %w", u.Image(), err)
		default:
			without = append(without, unsigned{u, err.Error()})
		}
	}
	listed, err := f.list(ctx, s, rules, good)
	switch {
	case errors.Is(err, signed.ErrFull):
		return nil, step.Stop(v1alpha1.TooLargeReason, err)
	case err != nil:
		return nil, err
	case waits != nil:
		return nil, step.WaitQuietly(s.Waited("signatures"), step.Quiet, step.LastLook, waits)
	case failed != nil:
		return nil, outcomeOf(failed)
	case !listed:
		return nil, step.Soon(50 * time.Millisecond)
	}
	return without, nil
}

// Unsigned returns why images that Verify was last called for, as "<full name>@<digest>", have no signature that counts.
func (f *Fetcher) Unsigned(app *v1alpha1.App) map[string]string {
	m := f.waiting.Get(app)
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for _, u := range m.unsigned {
		all[u.Image()] = u.why
	}
	return all
}

// rules returns the Guardrails of the App's project as they are now. A plan has only those that it began with.
func (f *Fetcher) rules(ctx context.Context, s *subject.Subject) (*v1alpha1.GuardrailsSpec, error) {
	if f.Signed == nil {
		return s.Guardrails, nil
	}
	live := &v1alpha1.Guardrails{}
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: s.App.Namespace, Name: v1alpha1.GuardrailsName}, live); err != nil {
		return nil, fmt.Errorf("reading the guardrails of namespace %s: %w", s.App.Namespace, err)
	}
	return &live.Spec, nil
}

// ask records which images the App needs, so that they stay listed, and returns how many there are.
func (f *Fetcher) ask(s *subject.Subject, objects []*unstructured.Unstructured) int {
	all := *s.Guardrails
	all.Signed = nil
	var images []string
	for _, u := range policy.Unverified(objects, &all) {
		images = append(images, u.Image())
	}
	slices.Sort(images)
	images = slices.Compact(images) // Several policies may want the same one.
	if f.Signed != nil {
		f.Signed.Ask(s.Key(), images)
	}
	return len(images)
}

// list adds images to those in the Guardrails, and sets the subject's. It reports whether the Guardrails have them.
func (f *Fetcher) list(ctx context.Context, s *subject.Subject, rules *v1alpha1.GuardrailsSpec, good []signed.Verified) (listed bool, err error) {
	now := *rules
	now.Signed = slices.Clone(now.Signed)
	for _, v := range good {
		now.Signed = append(now.Signed, v1alpha1.SignedImages{Signatures: v.Signatures, Images: []string{v.Image}})
	}
	s.Guardrails = &now
	if len(good) == 0 || f.Signed == nil {
		return true, nil
	}
	return f.Signed.Add(ctx, s.App.Namespace, good)
}

// verified returns nil if an image is signed, ErrSignature if it is not, and *cache.Unanswered while its registry is asked. The answer that it is signed holds
// for good; other answers are asked for again, after pauses that double up to five minutes. access is nil for an image of a pod.
func (f *Fetcher) verified(ctx context.Context, p *pass, u guardrails.Unverified, access func() (transport.Access, error)) error {
	versions, err := f.registryVersions(ctx, p)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(u.Name, "/")
	query := cache.Query{
		Question: cache.Question{MaxAge: math.MaxInt64}, Caller: p.Key(), Key: fmt.Sprintf("%q", []string{p.App.Namespace, u.Image(), u.Signatures, versions}),
		Host: transport.HostOf("https://" + host), Tenant: p.Owner.Tenant, Priority: pool.App, Timeout: min(verifyWithin, p.App.Spec.Within()),
	}
	if access == nil {
		access = func() (transport.Access, error) { return f.imageAccess(ctx, p, u.Name) }
	}
	_, err = f.Answers.Signatures.Get(query, func() (cache.Fetcher[Verified], error) {
		by, err := access()
		image := cosign.Image{Name: u.Name, Digest: u.Digest, Access: by}
		return func(ctx context.Context) (Verified, error) { return Verified{}, f.Cosign.Verify(ctx, image, u.Rules) }, err
	})
	if err != nil && !errors.As(err, new(*cache.Unanswered)) {
		until, _ := f.Answers.Signatures.Failure(query.Key)
		f.Queue.AddAfter(p.Key(), max(until.Sub(p.Now()), time.Second))
	}
	return err
}

// imageAccess returns how the registry of an image is reached.
func (f *Fetcher) imageAccess(ctx context.Context, p *pass, name string) (transport.Access, error) {
	repository, err := f.repository(ctx, p, name)
	if err != nil {
		return transport.Access{}, err
	}
	return repository.Access()
}

// registryVersions identifies the credentials by which registries can be asked about images.
func (f *Fetcher) registryVersions(ctx context.Context, p *pass) (versions string, err error) {
	for _, registry := range p.PullSecrets {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, registry.Name())
		if err != nil {
			return "", err
		}
		versions += " " + registry.Host + settings(registry) + " " + version
	}
	for _, secret := range secretRefsOf(&p.App.Spec) {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, secret.Name)
		if err != nil {
			return "", err
		}
		versions += " " + version
	}
	return versions, nil
}

// SignedLater counts how often an image was signed after an App was refused because of it. When it changes, what was refused is worth another try.
func (f *Fetcher) SignedLater(ctx context.Context, s *subject.Subject) int {
	m := f.waiting.Get(s.App)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unsigned = slices.DeleteFunc(m.unsigned, func(u unsigned) bool {
		is := f.verified(ctx, &pass{Subject: s}, u.Unverified, nil) == nil
		if is {
			m.freed++
		}
		return is
	})
	return m.freed
}

// The pauses of a Helm action between two looks for the answers of registries. They double.
const firstPause, longestPause = 50 * time.Millisecond, 2 * time.Second

// AwaitVerified is Verify for a Helm action, which runs beside the Reconcile: it waits for the registries, as long as one of them may take.
func (f *Fetcher) AwaitVerified(ctx context.Context, s *subject.Subject, objects []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	s.Since("signatures")
	if err := f.awaitAnswers(ctx, s, objects); err != nil && !step.Waits(err) { // Verify says for which registry it waits.
		return err
	}
	return step.Repeat(ctx, firstPause, longestPause, func() error { return f.Verify(ctx, s, objects) })
}

// awaitAnswers waits until the registries of all images have answered. It collects the images once, while Verify looks at all objects each time.
func (f *Fetcher) awaitAnswers(ctx context.Context, s *subject.Subject, objects []*unstructured.Unstructured) error {
	if !guardrails.Verifies(s.Guardrails) {
		return nil
	}
	rules, err := f.rules(ctx, s)
	if err != nil {
		return err
	}
	p, left := &pass{Subject: s}, policy.Unverified(objects, rules)
	return step.Repeat(ctx, firstPause, longestPause, func() error {
		left = slices.DeleteFunc(left, func(u guardrails.Unverified) bool {
			return !errors.As(f.verified(ctx, p, u, nil), new(*cache.Unanswered))
		})
		if len(left) > 0 {
			return step.Soon(longestPause)
		}
		return nil
	})
}

// VerifyRunning is Verify for what a release has in the cluster, once for each change of the rules: a chart is rendered only with its next release, but its
// pods start anew before. Images without a signature are not listed, and no error.
func (f *Fetcher) VerifyRunning(ctx context.Context, s *subject.Subject, entries []v1alpha1.InventoryEntry) error {
	m, rules := f.waiting.Get(s.App), guardrails.SignaturesIn(s.Guardrails)
	m.mu.Lock()
	done := m.rules == rules || f.Signed == nil
	m.mu.Unlock()
	if done {
		return nil
	}
	var objects []*unstructured.Unstructured
	for _, e := range entries {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(id.GroupKind().WithVersion(e.Version))
		if id.Namespace != s.App.Namespace || e.Stale || !podspec.Has(id.GroupKind()) {
			continue
		}
		err = s.Client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s/%s to verify the signatures of its images: %w", id.Kind, id.Name, err)
		}
		objects = append(objects, object)
	}
	without, err := f.verify(ctx, s, objects)
	if err != nil || len(without) > 0 {
		return err // What has no signature may get one.
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = rules
	return nil
}

// VerifyKept is VerifyRunning for an App that is not ready: it may be long until it gets to Verify, for example because its source is gone, and what it has in
// the cluster starts anew meanwhile. It holds nothing back.
func (f *Fetcher) VerifyKept(ctx context.Context, s *subject.Subject, entries []v1alpha1.InventoryEntry) {
	if conditions.IsReady(s.App) {
		return
	}
	if err := f.VerifyRunning(ctx, s, entries); err != nil {
		ctrl.LoggerFrom(ctx).Info("Signatures of images that run are not verified yet", "reason", err.Error())
	}
}

// allowSigned judges a chart or an artifact by the signatures of its manifest, before anything of it is used.
func (f *Fetcher) allowSigned(ctx context.Context, p *pass, source guardrails.Source, digest string, access func() (transport.Access, error)) error {
	unverified, unclear := guardrails.UnverifiedSource(source, digest, p.Guardrails)
	broken := noticesOf("App/"+p.App.Name, unclear)
	for _, u := range unverified {
		err := f.verified(ctx, p, u, access)
		if err != nil && !errors.Is(err, failure.ErrSignature) && (u.Action == v1alpha1.DenyAction || errors.As(err, new(*cache.Unanswered))) {
			return fmt.Errorf("verifying the signatures of %s@%s: %w", source.URL, digest, err)
		}
		if err != nil {
			broken = append(broken, policy.Notice{Object: "App/" + p.App.Name, Violation: u.Violation(fmt.Sprintf("is made from %s@%s, which has to be signed: %s", source.URL, digest, err))})
		}
	}
	return p.breaks(broken)
}

// allowUnverified judges a source that is not fetched with its own digest, so that nobody can verify its signatures.
func (p *pass) allowUnverified(object string, source guardrails.Source, instead string) error {
	unverified, unclear := guardrails.UnverifiedSource(source, "", p.Guardrails)
	broken := noticesOf(object, unclear)
	for _, u := range unverified {
		broken = append(broken, policy.Notice{Object: object, Violation: u.Violation(fmt.Sprintf("is fetched from %s, which has to be signed, and its signatures cannot be verified: %s", source.URL, instead))})
	}
	return p.breaks(broken)
}

// noticesOf are violations of an object.
func noticesOf(object string, violations []guardrails.Violation) (all []policy.Notice) {
	for _, v := range violations {
		all = append(all, policy.Notice{Object: object, Violation: v})
	}
	return all
}

// breaks records what a source breaks, and returns a *policy.Violation if a policy denies it.
func (p *pass) breaks(broken []policy.Notice) error {
	for _, n := range broken {
		if !slices.Contains(p.found.Broken, n) {
			p.found.Broken = append(p.found.Broken, n)
		}
	}
	return policy.Refusal(broken)
}
