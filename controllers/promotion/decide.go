package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/reference"
	"github.com/kubeop/kubeop/gitops/edit"
)

// healthyFor is how long the other app has to be healthy if the project does not say.
const healthyFor = 10 * time.Minute

// version are the fields of the version of an app, below spec.
var version = []string{"image.reference", "helm.version", "helm.digest", "git.oci.tag", "git.oci.digest", "git.ref.tag", "git.ref.commit"}

// shownChange says what a change changes.
func shownChange(c update.Change) string {
	return fmt.Sprintf("%s: %s → %s", strings.TrimPrefix(c.Field, "spec."), shown(c.Was), shown(c.Value))
}

// maxShown is how many bytes of a value a message has.
const maxShown = 150

// shown is a value for messages. A long one, such as a file among the values of a chart, is not shown.
func shown(value any) string {
	text, is := value.(string)
	if !is && value != nil {
		data, err := json.Marshal(value)
		if err != nil {
			return "another value"
		}
		text = string(data)
	}
	switch {
	case value == nil:
		return "nothing"
	case len(text) > maxShown:
		return fmt.Sprintf("a value of %d bytes", len(text))
	}
	return few.Printable(text)
}

// verdict says what is promoted.
type verdict struct {
	// Changes are the fields that differ; none if there is nothing to promote. Version identifies them.
	Changes []update.Change
	Version string
	// Waits says why they are not promoted yet; "" if they may be. Again is when to look again although nothing changes; 0 if that is not needed.
	Waits string
	Again time.Duration
}

// decide compares an app with the one of the same name in the other project. The error says why nothing can be promoted between the two, until one
// of their files changes.
func decide(p *v1alpha1.Promotion, from, to *v1alpha1.App, now time.Time) (verdict, error) {
	if from.Spec.Type != to.Spec.Type {
		return verdict{}, fmt.Errorf("its type is %s, and that of %s/%s is %s", to.Spec.Type, p.From, from.Name, from.Spec.Type)
	}
	if i := to.Spec.Image; i != nil && i.Policy != nil {
		return verdict{}, fmt.Errorf("its image is chosen by spec.image.policy: remove the policy from its file, so that a version can be promoted")
	}
	var v verdict
	var err error
	if v.Changes, err = changes(p, from, to); err != nil || len(v.Changes) == 0 {
		return v, err
	}
	text := ""
	for _, c := range v.Changes {
		value, err := json.Marshal(c.Value)
		if err != nil {
			return verdict{}, fmt.Errorf("encoding %s: %w", c.Field, err)
		}
		text += c.Field + "=" + string(value) + "\n"
	}
	sum := sha256.Sum256([]byte(text))
	v.Version = hex.EncodeToString(sum[:4])
	v.Waits, v.Again = waits(p, from, now)
	return v, nil
}

// changes returns the fields that differ.
func changes(p *v1alpha1.Promotion, from, to *v1alpha1.App) ([]update.Change, error) {
	source, err := text(delivered(from, to))
	if err != nil {
		return nil, err
	}
	target, err := text(&to.Spec)
	if err != nil {
		return nil, err
	}
	var all []update.Change
	for i, field := range slices.Concat(version, p.Fields) {
		change, differs, err := compare(source, target, field)
		if err != nil {
			return nil, err
		}
		if differs && (change.Was != nil || i >= len(version)) { // A field that a person names is written also if it is not there.
			all = append(all, change)
		}
	}
	if h, s := to.Spec.Helm, from.Spec.Helm; len(all) > 0 && h != nil && h.Digest != "" && s.Digest == "" {
		return nil, fmt.Errorf("its file has helm.digest, and the file of %s/%s has none: in Git, write it there, too, or remove it here", p.From, from.Name)
	}
	if len(all) == 0 && unpinned(from.Spec.Git, to.Spec.Git) { // Fields that a person names are promoted all the same.
		return nil, fmt.Errorf("its file has git.oci.tag, and %s/%s follows the tag latest: in Git, write git.oci.digest here, or a tag or semver there", p.From, from.Name)
	}
	return all, nil
}

// compare compares a field below spec. What the source does not have is no difference.
func compare(source, target []byte, field string) (c update.Change, differs bool, err error) {
	path, err := edit.ParsePath("spec." + field)
	if err != nil {
		return update.Change{}, false, fmt.Errorf("spec.promotion.fields: %q is no path of a field, such as helm.values.image.tag: %w", field, err)
	}
	value, there, err := edit.Get(source, path)
	if err != nil || !there {
		return update.Change{}, false, err
	}
	was, has, err := edit.Get(target, path)
	return update.Change{Field: path.String(), Was: was, Value: value}, err == nil && (!has || !edit.Same(was, value)), err
}

func text(spec *v1alpha1.AppSpec) ([]byte, error) {
	data, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of an app: %w", err)
	}
	return data, nil
}

// delivered returns the spec with the version that runs, where the spec leaves that open. An image of another repository, such as a registry of its
// own for production, keeps its name and gets the tag.
func delivered(from, to *v1alpha1.App) *v1alpha1.AppSpec {
	spec := from.Spec.DeepCopy()
	if i := spec.Image; i != nil {
		if i.Policy != nil && i.Policy.Write == "" && from.Status.Image != nil {
			i.Reference = from.Status.Image.Reference
		}
		i.Reference = reference.Name(to.Spec.Image.Reference) + strings.TrimPrefix(i.Reference, reference.Name(i.Reference))
	}
	if h := spec.Helm; h != nil && h.Chart != "" && len(from.Status.History) > 0 {
		if _, exact := semver.StrictNewVersion(strings.TrimPrefix(h.Version, "v")); exact != nil {
			h.Version = from.Status.History[0].ChartVersion
		}
	}
	if g := spec.Git; g != nil && g.OCI != nil {
		fill(g.OCI, from.Status.LastAppliedRevision)
	}
	if g := spec.Git; g != nil && g.OCI == nil && g.URL == to.Spec.Git.URL {
		if commit := v1alpha1.CommitOf(from.Status.LastAppliedRevision); commit != "" {
			if g.Ref == nil { // It follows the default branch.
				g.Ref = &sourcev1.GitRepositoryRef{}
			}
			g.Ref.Commit = commit
		}
	}
	return spec
}

// fill sets the tag and the digest of the artifact that runs, with the revision "<tag>@sha256:<hex>", where its source leaves them open. Without a
// tag and a range it follows the tag latest, which names another artifact tomorrow, so only the digest is set.
func fill(source *v1alpha1.OCISource, revision string) {
	tag, hash, is := strings.Cut(revision, "@sha256:")
	if !is || source.Digest != "" {
		return
	}
	source.Digest = "sha256:" + hash
	if source.SemVer != "" {
		source.Tag = tag
	}
}

// unpinned reports whether the version of an artifact cannot be promoted, because the app here has a tag alone and the other one follows latest.
func unpinned(from, to *v1alpha1.GitSource) bool {
	if from == nil || to == nil || from.OCI == nil || to.OCI == nil || from.OCI.Tag+from.OCI.SemVer+from.OCI.Digest != "" {
		return false
	}
	return to.OCI.Digest == "" && to.OCI.Tag != "" && to.OCI.Tag != "latest"
}

// waits says why the version of an app is not promoted yet, and when to look again.
func waits(p *v1alpha1.Promotion, app *v1alpha1.App, now time.Time) (why string, again time.Duration) {
	name := p.From + "/" + app.Name
	ready := conditions.Get(app, v1alpha1.ReadyCondition)
	switch {
	case app.DeletionTimestamp != nil:
		return name + " is being deleted", 0
	case app.GetSchedule().Suspend || conditions.IsTrue(app, v1alpha1.SuspendedCondition):
		return name + " is suspended", 0
	case ready == nil || ready.ObservedGeneration != app.Generation || app.Status.ObservedTree != app.Annotations[v1alpha1.TreeAnnotation]:
		return name + " is not delivered yet", 0
	case ready.Status != metav1.ConditionTrue:
		message, _, _ := strings.Cut(ready.Message, "\n")
		return fmt.Sprintf("%s is not ready: %s: %s", name, ready.Reason, message), 0
	}
	since := ready.LastTransitionTime.Time
	if len(app.Status.Deliveries) > 0 {
		last := app.Status.Deliveries[0]
		if last.Result != v1alpha1.DeliverySucceeded || last.FinishedAt == nil {
			return name + " is being delivered", 0
		}
		if last.FinishedAt.After(since) {
			since = last.FinishedAt.Time
		}
	}
	wanted := healthyFor
	if p.HealthyFor != nil {
		wanted = p.HealthyFor.Duration
	}
	if left := since.Add(wanted).Sub(now); left > 0 {
		return fmt.Sprintf("%s is healthy since %s, and has to be for %s", name, since.UTC().Format("15:04:05 UTC"), wanted), left
	}
	return "", 0
}
