//go:build e2e

package availability

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// tenant has its own repository, a project shop with the app steady, and a project evil for attacks.
type tenant struct {
	name string
	repo *stage.Repository
	// pushed is the newest commit, and turn the last pushed turn of the app steady.
	pushed string
	turn   int
	// prepared are the attacks whose ready function has run.
	prepared map[string]bool
	// limits are spec.limits of its Tenant as YAML, or "" for the defaults.
	limits string
}

const (
	declared    = "apiVersion: paas.kubeop.io/v1alpha1\nkind: %s\nmetadata: {name: %s}\n"
	bindingYAML = `spec:
  owners: [{kind: User, name: %[1]s-admin, role: admin}]
  repository:
    url: %[2]s
    secretRef: {name: %[1]s-git}
    hookSecretRef: {name: %[1]s-hook}
`
	steadyYAML = `spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: steady}, data: {turn: "%d"}}
`
)

// files are contents by path in a repository.
type files map[string][]byte

// newTenant creates a tenant and waits for its app steady. Its projects have the Secret git for its own repository.
func newTenant(ctx context.Context, name string) (*tenant, error) {
	repo, err := newRepository(ctx, name)
	if err != nil {
		return nil, err
	}
	t := &tenant{name: name, repo: repo, prepared: map[string]bool{}}
	if err := t.commit(ctx, "Begin", files{
		"kubeop.yaml":                        []byte("layout: v1\n"),
		"projects/shop/project.yaml":         fmt.Appendf(nil, declared, "Project", "shop"),
		"projects/evil/project.yaml":         fmt.Appendf(nil, declared, "Project", "evil"),
		"projects/shop/apps/steady/app.yaml": t.steady(),
	}); err != nil {
		return nil, err
	}
	if err := t.push(ctx); err != nil {
		return nil, err
	}
	if err := t.welcome(ctx); err != nil {
		return nil, err
	}
	if err := stage.Until(ctx, stepTimeout, name+" is there", t.moved); err != nil {
		return nil, err
	}
	for _, project := range []string{"shop", "evil"} {
		secret := &corev1.Secret{StringData: map[string]string{"username": repo.User, "password": repo.Password}}
		secret.Namespace, secret.Name = t.namespace(project), "git"
		err := stage.Until(ctx, stepTimeout, "the namespace of "+project, func(ctx context.Context) error { return platform.Client.Create(ctx, secret) })
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *tenant) welcome(ctx context.Context) error {
	rootLock.Lock()
	defer rootLock.Unlock()
	content := fmt.Sprintf(declared, "Tenant", t.name) + fmt.Sprintf(bindingYAML, t.name, t.repo.OperatorURL)
	if t.limits != "" {
		content += "  limits: " + t.limits + "\n"
	}
	if err := root.Write("tenants/"+t.name+"/tenant.yaml", []byte(content)); err != nil {
		return err
	}
	return root.Push(ctx, "Welcome "+t.name)
}

func (t *tenant) namespace(project string) string { return v1alpha1.ProjectNamespace(t.name, project) }

// commit commits files on top of the current ones, after deleting the folders in removed.
func (t *tenant) commit(ctx context.Context, message string, with files, removed ...string) error {
	from := ""
	if t.pushed != "" {
		from = "refs/heads/main^0"
	}
	c := &stage.Commits{}
	c.Commit("main", from, message)
	for _, name := range removed {
		c.Remove(name)
	}
	for _, name := range slices.Sorted(maps.Keys(with)) {
		c.File(name, with[name])
	}
	if err := t.repo.Import(ctx, c.Done()); err != nil {
		return err
	}
	var err error
	t.pushed, err = t.repo.Git(ctx, "rev-parse", "refs/heads/main")
	return err
}

func (t *tenant) push(ctx context.Context) error {
	return t.repo.PushRef(ctx, "refs/heads/main", t.repo.URL)
}

func (t *tenant) steady() []byte {
	return []byte(fmt.Sprintf(declared, "App", "steady") + fmt.Sprintf(steadyYAML, t.turn))
}

// move pushes another turn of the app steady.
func (t *tenant) move(ctx context.Context) error {
	t.turn++
	if err := t.commit(ctx, "Move on", files{"projects/shop/apps/steady/app.yaml": t.steady()}); err != nil {
		return err
	}
	return t.push(ctx)
}

// moved checks that the app steady has the ConfigMap of its newest turn.
func (t *tenant) moved(ctx context.Context) error {
	made := &corev1.ConfigMap{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: t.namespace("shop"), Name: "steady"}, made); err != nil {
		return err
	}
	if is := made.Data["turn"]; is != fmt.Sprint(t.turn) {
		return fmt.Errorf("it is at turn %s, not %d", is, t.turn)
	}
	return nil
}

// clean checks that only the tenant's initial objects are left and that its Repository reports no problem. It confirms held
// deletions of apps.
func (t *tenant) clean(ctx context.Context) error {
	repository := &v1alpha1.Repository{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Name: t.name}, repository); err != nil {
		return err
	}
	if !strings.HasSuffix(repository.Status.LastAttemptedRevision, t.pushed) {
		return fmt.Errorf("the Repository is at %s, not %s", repository.Status.LastAttemptedRevision, t.pushed)
	}
	if stage.NeedsConfirmation(repository) {
		return errors.Join(platform.ConfirmAs(ctx, repository), errors.New("it still holds deletions"))
	}
	left, err := t.left(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d are left, such as %s", len(left), left[0])
	}
	return platform.Ready(ctx, repository, "", t.name)
}

// left lists the tenant's Apps, Projects and namespaces that it did not have at first.
func (t *tenant) left(ctx context.Context) ([]string, error) {
	apps, projects, namespaces := &v1alpha1.AppList{}, &v1alpha1.ProjectList{}, &corev1.NamespaceList{}
	for list, label := range map[client.ObjectList]string{apps: v1alpha1.RepositoryLabel, projects: v1alpha1.RepositoryLabel, namespaces: v1alpha1.TenantLabel} {
		if err := platform.Client.List(ctx, list, client.MatchingLabels{label: t.name}); err != nil {
			return nil, err
		}
	}
	var left []string
	for i := range apps.Items {
		if a := &apps.Items[i]; a.Name != "steady" {
			left = append(left, "App "+a.Name)
		}
	}
	for i := range projects.Items {
		if name := projects.Items[i].Name; name != "shop" && name != "evil" {
			left = append(left, "Project "+name)
		}
	}
	known := []string{v1alpha1.HomeNamespace(t.name), t.namespace("shop"), t.namespace("evil")}
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; !slices.Contains(known, name) {
			left = append(left, "Namespace "+name)
		}
	}
	return left, nil
}

// newRepository creates a repository whose pushes call the operator's push hook, and the Secrets "<name>-git" and "<name>-hook".
func newRepository(ctx context.Context, name string) (*stage.Repository, error) {
	key := rand.Text()
	r, err := platform.CreateRepository(ctx, name, key)
	if err != nil {
		return nil, err
	}
	if err := platform.SetSecret(ctx, name+"-git", map[string]string{"username": r.User, "password": r.Password}); err != nil {
		return nil, err
	}
	return r, platform.SetSecret(ctx, name+"-hook", map[string]string{"token": key})
}
