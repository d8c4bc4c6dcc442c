// Package plan says what a commit will change before it lands: it runs what the operator runs, over connections that write nothing.
package plan

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// command is one call of plan or diff.
type command struct {
	*call.Call
	format output.Format
	// repository is the name of the Repository.
	repository string
	// comment is the number of the pull request at host that gets the plan as a comment; 0 for none.
	comment int
	host    git.Host
	// only is the App that diff compares; zero for all that the commit changes.
	only identity.Ref
}

// markdown is the format for a comment on a pull request.
const markdown output.Format = "markdown"

// Command returns the command plan.
func Command(c *call.Call) *cobra.Command {
	p := &command{Call: c}
	cmd := &cobra.Command{
		Use:   "plan [DIR|REF]",
		Short: "Show what a commit would change, before it lands",
		Long: `Show what a commit would change: the projects and apps that it creates, changes, deletes or holds, and for each changed app the objects with the
fields that change. Git apps, charts and images are fetched, rendered and checked by the code of the operator. Nothing is written to the cluster.
With the right to impersonate the deployers of projects, which administrators have, each object is tried by a dry run of the API server, so that its
refusals are listed. Otherwise objects are compared with the live ones. Secrets are masked.

DIR is a clone with changes that need not be committed (default: the current folder). REF is a commit, branch or tag of the clone in the current
folder, such as the head of a pull request. The exit code is 2 if the commit changes something.

--comment also writes the plan to a pull request at the Git host, and deletes the last one of the same Repository there.`,
		Example: `  # Before a commit
  kubeop plan

  # What a branch would change, for people to read
  kubeop plan origin/feature -o markdown

  # In CI: the plan as a comment on pull request 7, in place of the last one
  kubeop plan --comment 7 --token-file token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), append(args, ".")[0]) },
	}
	p.format.AddFlag(cmd, output.Table, markdown, output.JSON, output.YAML)
	cmd.Flags().StringVar(&p.repository, "repository", "", "name of the Repository (default: the tenant's, or platform)")
	cmd.Flags().IntVar(&p.comment, "comment", 0, "number of a pull request that gets the plan as a comment")
	p.host.AddFlags(cmd.Flags())
	return cmd
}

// run prints the plan.
func (p *command) run(ctx context.Context, arg string) error {
	made, err := p.make(ctx, arg)
	if err == nil && p.comment > 0 {
		err = p.publish(ctx, made)
	}
	if err != nil {
		return err
	}
	return p.print(made)
}

// maxComment is how long a comment may be: GitHub takes 65,536 characters, and the other hosts more.
const maxComment = 60_000

// publish writes the plan to the pull request.
func (p *command) publish(ctx context.Context, made *Plan) error {
	at, err := git.RemoteURL(ctx, ".")
	if err != nil {
		return err
	}
	repository, err := p.host.Open(ctx, at, p.Clock.Now)
	if err != nil {
		return err
	}
	defer repository.Close()
	body := markdownOf(made)
	if len(body) > maxComment {
		body = strings.ToValidUTF8(body[:maxComment], "") + "\n```\n\n</details>\n\nThe rest is left out: `kubeop plan` shows it.\n"
	}
	return repository.ReplaceComment(ctx, p.comment, "<!-- kubeop plan of "+made.Repository+" -->\n", body)
}

// print prints a plan. If it has changes, the exit code is Differences.
func (p *command) print(made *Plan) error {
	var err error
	switch p.format {
	case output.JSON, output.YAML:
		err = p.format.Write(p.Data, made)
	case markdown:
		err = p.markdown(made)
	default:
		err = p.text(made)
	}
	if err == nil && !made.Empty() {
		return &exit.Error{Code: exit.Differences, Err: exit.ErrSaid}
	}
	return err
}

// make makes the plan of a folder or commit.
func (p *command) make(ctx context.Context, arg string) (*Plan, error) {
	scratch, err := os.MkdirTemp("", "kubeop-plan-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // What is left is below the folder for temporary files.
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	commit, err := take(ctx, arg, scratch)
	if err != nil {
		return nil, err
	}
	repository, err := p.find(ctx, c, commit)
	if err != nil {
		return nil, err
	}
	compared, err := compare(ctx, c, repository, commit)
	if err != nil {
		return nil, err
	}
	made := &Plan{Repository: repository.Name, Revision: commit.revision}
	compared.tree.All(func(problem tree.Problem) bool {
		made.Problems = append(made.Problems, problem.String())
		return true
	})
	if !compared.tree.Usable() {
		return made, nil
	}
	if p.only.App == "" {
		if made.Frozen, err = p.frozen(ctx, c, repository); err != nil {
			return nil, err
		}
		made.Changes, made.Held, err = compared.changes(ctx)
	} else {
		_, err = compared.one(p.only)
	}
	if err != nil {
		return nil, err
	}
	made.Apps, err = p.apps(ctx, c, compared, scratch)
	return made, err
}

// frozen says until when a freeze holds what is pushed to a Repository now; "" without one. The first commit is not held.
func (p *command) frozen(ctx context.Context, c client.Client, repository *v1alpha1.Repository) (string, error) {
	if repository.Spec.Tenant == "" || repository.Status.LastAttemptedRevision == "" {
		return "", nil
	}
	tenant := &v1alpha1.Tenant{}
	if err := c.Get(ctx, client.ObjectKey{Name: repository.Spec.Tenant}, tenant); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading tenant %s: %w", repository.Spec.Tenant, err)
	}
	hold, err := freeze.InForce(tenant.Spec.Freeze, p.Clock.Now())
	if err != nil {
		return "because nobody can tell whether a freeze is in force: " + err.Error(), nil
	}
	if hold == nil {
		return "", nil
	}
	return hold.String(), nil
}

// find reads the Repository.
func (p *command) find(ctx context.Context, c client.Client, commit *snapshot) (*v1alpha1.Repository, error) {
	name := p.repository
	if name == "" {
		name = p.Within().Tenant
	}
	if name == "" {
		name = filepath.Base(commit.root)
		if info, err := os.Stat(filepath.Join(commit.root, "tenants")); err == nil && info.IsDir() {
			name = v1alpha1.PlatformRepository
		}
	}
	repository := &v1alpha1.Repository{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, repository); err != nil {
		return nil, fmt.Errorf("reading repository %s, which can be named by --repository or --tenant: %w", name, err)
	}
	return repository, nil
}

// atOnce is how many Apps are rendered or compared at once.
const atOnce = 4

// apps plans the Apps that the commit creates or changes.
func (p *command) apps(ctx context.Context, c client.Client, of *comparison, scratch string) ([]App, error) {
	if len(of.apps) == 0 {
		return nil, nil
	}
	config, err := p.Config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	folders := func(a *v1alpha1.App) (*folder.Folder, error) {
		return of.commit.folder(a.Annotations[v1alpha1.TreeAnnotation]), nil
	}
	k, err := connect(ctx, config, c, folders, scratch)
	if err != nil {
		return nil, err
	}
	all := make([]*delivery, len(of.apps))
	each(len(all), func(i int) {
		all[i] = &delivery{app: of.apps[i]}
		if all[i].err = k.place(ctx, of, all[i]); all[i].err == nil {
			k.render(ctx, all[i])
		}
	})
	others, err := siblingsOf(of, all)
	if err != nil {
		return nil, err
	}
	out := make([]App, len(all))
	each(len(all), func(i int) { out[i] = k.report(ctx, all[i], others) })
	leaveRefused(out)
	return out, nil
}

// leaveRefused corrects the moves of objects that are refused in the app that takes them over: they stay as they are.
func leaveRefused(apps []App) {
	refused := map[string]bool{}
	for _, a := range apps {
		for _, c := range a.Changes {
			refused[a.App+" "+c.Object] = c.Action == Refuse
		}
		refused[a.App] = a.Failed != ""
	}
	for _, a := range apps {
		for i := range a.Changes {
			if c := &a.Changes[i]; c.Action == Move && (refused[c.to] || refused[c.to+" "+c.Object]) {
				c.Action, c.Why = Keep, "app "+c.to+" declares it and cannot take it over"
			}
		}
	}
}

// each calls do with each index, some at once.
func each(n int, do func(int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}

// place finds where an App is delivered.
func (k *cluster) place(ctx context.Context, of *comparison, d *delivery) error {
	ref, _ := identity.Of(d.app)
	d.at.Owner = own.Owner{Tenant: ref.Tenant, Project: ref.Project, App: ref.App, Namespace: d.app.Namespace}
	d.at.Namespace = &metav1.ObjectMeta{Name: d.app.Namespace}
	tenant, err := declaredOr(ctx, of, ref.Parent().Parent(), &v1alpha1.Tenant{})
	if err != nil {
		return err
	}
	project, err := declaredOr(ctx, of, ref.Parent(), &v1alpha1.Project{})
	if err != nil {
		return err
	}
	d.at.Tenant, d.homeless = tenant, project.UID == ""
	d.retain = claimPolicy(d.app, project, tenant) != v1alpha1.ClaimDelete
	if ref.Tenant == v1alpha1.PlatformTenant {
		namespace := &corev1.Namespace{}
		if err := k.client.Get(ctx, client.ObjectKey{Name: d.app.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading namespace %s: %w", d.app.Namespace, err)
		}
		d.at.Namespace, d.homeless = namespace, namespace.UID == ""
	}
	d.at.Client, err = k.Clients.As(d.app.Namespace)
	return err
}

// declaredOr returns a Tenant or Project as the commit declares it, with the UID of the live one, or the live one if the commit does not declare
// it; an empty one if there is none.
func declaredOr[T client.Object](ctx context.Context, of *comparison, ref identity.Ref, empty T) (T, error) {
	if err := of.client.Get(ctx, ref.Key(), empty); client.IgnoreNotFound(err) != nil {
		return empty, fmt.Errorf("reading %s: %w", ref, err)
	}
	n, there := of.tree.Find(ref)
	if !there || !n.Declared() || of.repository.Spec.Tenant != "" && ref.Project == "" {
		return empty, nil
	}
	want, err := of.reader.Default(of.tree.Object(n, of.commit.revision))
	if err != nil {
		return empty, err
	}
	want.SetUID(empty.GetUID())
	typed, ok := want.(T)
	if !ok {
		return empty, fmt.Errorf("%s is a %T", ref, want)
	}
	return typed, nil
}

func claimPolicy(a *v1alpha1.App, project *v1alpha1.Project, tenant *v1alpha1.Tenant) v1alpha1.ClaimDeletionPolicy {
	for _, policy := range []v1alpha1.ClaimDeletionPolicy{a.Spec.ClaimDeletionPolicy, project.Spec.ClaimDeletionPolicy, tenant.Spec.ClaimDeletionPolicy} {
		if policy != "" {
			return policy
		}
	}
	return v1alpha1.ClaimRetain
}
