package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/policy"
)

// command is the helm program, built from the same version of the SDK as the engine.
type command struct{ program, home string }

// newCommand finds the program that `make test` builds.
func newCommand(t *testing.T) *command {
	t.Helper()
	program, err := filepath.Abs("../../.build/bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	c := &command{program: program, home: t.TempDir()}
	admin := clientcmdapi.NewConfig()
	admin.Clusters["test"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData, CertificateAuthority: env.Config.CAFile}
	admin.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		Token:                 env.Config.BearerToken,
		ClientCertificate:     env.Config.CertFile,
		ClientCertificateData: env.Config.CertData,
		ClientKey:             env.Config.KeyFile,
		ClientKeyData:         env.Config.KeyData,
	}
	admin.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	admin.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*admin, c.kubeconfig()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *command) kubeconfig() string { return filepath.Join(c.home, "kubeconfig") }

// run runs helm as the namespace's deployer, which the engine impersonates as well.
func (c *command) run(t *testing.T, namespace string, args ...string) (out string, err error) {
	t.Helper()
	args = append(args, "--namespace", namespace, "--kube-as-user", deployer(namespace), "--kubeconfig", c.kubeconfig())
	helm := exec.CommandContext(t.Context(), c.program, args...)
	helm.Env = []string{"HOME=" + c.home, "KUBECACHEDIR=" + filepath.Join(c.home, "cache")}
	stdout, err := helm.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(stdout), errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return string(stdout), err
}

// ask runs helm and decodes its JSON output.
func (c *command) ask(t *testing.T, namespace string, into any, args ...string) error {
	t.Helper()
	out, err := c.run(t, namespace, append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// side is one of the two namespaces of a case: kubeop manages the release in one, a person with helm in the other.
type side struct {
	*team
	*command
	person bool
	// charts is a copy of the case's folder, in which the API group team.example.com is replaced by the namespace's own.
	charts string
}

// sampleGroup is the API group of the charts' own kinds. Kinds belong to the whole cluster, so each namespace gets its own group.
const sampleGroup = "team.example.com"

func (s *side) group() string { return s.namespace + ".example.com" }

// sides returns two namespaces that use the same files and give their deployers the same rights.
func sides(t *testing.T, c *command, files fs.FS) []*side {
	t.Helper()
	kubeop := newTeam(t)
	all := []*side{{team: kubeop, command: c}, {team: beside(kubeop), command: c, person: true}}
	for _, s := range all {
		s.charts = t.TempDir()
		s.copy(files)
	}
	return all
}

// beside is another namespace with a deployer, as newTeam makes them.
func beside(tm *team) *team {
	tm.Helper()
	ctx := tm.Context()
	ns, err := tm.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}, metav1.CreateOptions{})
	if err != nil {
		tm.Fatal(err)
	}
	other := &team{T: tm.T, namespace: ns.Name, admin: tm.admin}
	bind(other, "deployer", "admin")
	other.awaitRights()
	return other
}

// bind gives the deployer a role in its namespace.
func bind(tm *team, name, role string) {
	tm.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: deployer(tm.namespace)}},
	}
	if _, err := tm.admin.RbacV1().RoleBindings(tm.namespace).Create(tm.Context(), binding, metav1.CreateOptions{}); err != nil {
		tm.Fatal(err)
	}
}

// allowKinds lets the deployer install and use kinds; they are deleted at the end of the test.
func (s *side) allowKinds() {
	s.Helper()
	bind(s.team, "own-kinds", "cluster-admin")
	everywhere := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "own-kinds-of-" + s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kindsRole},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: deployer(s.namespace)}},
	}
	if _, err := s.admin.RbacV1().ClusterRoleBindings().Create(s.Context(), everywhere, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		for _, crd := range s.kinds(context.Background()) {
			path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crd.GetName()
			if err := s.admin.CoreV1().RESTClient().Delete().AbsPath(path).Do(context.Background()).Error(); err != nil {
				s.Error(err)
			}
		}
	})
}

// kindsRole may write CustomResourceDefinitions.
const kindsRole = "corpus-kinds"

func (s *side) copy(files fs.FS) {
	s.Helper()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		to := filepath.Join(s.charts, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, bytes.ReplaceAll(data, []byte(sampleGroup), []byte(s.group())), 0o600)
	})
	if err != nil {
		s.Fatal(err)
	}
}

// apply takes a step with the release, and returns its error.
func (s *side) apply(number int, st step) error {
	s.Helper()
	if st.before != nil {
		st.before(s)
	}
	if s.person && st.person != nil {
		st.person(s)
	}
	values := strings.ReplaceAll(st.values, sampleGroup, s.group())
	if s.person {
		return s.helmApply(number, st, values)
	}
	out := s.settle(s.wanted(st, values))
	return out.Failed
}

// wanted returns the request for a step.
func (s *side) wanted(st step, values string) Request {
	s.Helper()
	dir := filepath.Join(s.charts, st.chart)
	r := s.request(os.DirFS(dir))
	r.Input.Chart.Digest = dir
	r.Timeout = time.Minute
	r.Policy.Admit = s.check
	if err := yaml.Unmarshal([]byte(values), &r.Input.Values); err != nil {
		s.Fatal(err)
	}
	configure(&r, st.actions)
	return r
}

// helmApply takes the same step with the helm command. Like kubeop it does not reuse the values of the revision before.
func (s *side) helmApply(number int, st step, values string) error {
	s.Helper()
	file := filepath.Join(s.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		s.Fatal(err)
	}
	args := []string{"install", "web", filepath.Join(s.charts, st.chart), "-f", file, "--timeout", "1m"}
	if number > 0 {
		args[0] = "upgrade"
	}
	if number > 0 && !slices.Contains(st.flags, "--reuse-values") {
		args = append(args, "--reset-values")
	}
	args = append(args, st.flags...)
	_, err := s.run(s.T, s.namespace, args...)
	return err
}

// check enforces the platform's policy and adds no labels, which would be the only difference.
func (s *side) check(objects []*unstructured.Unstructured) error {
	scope := func(kind schema.GroupVersionKind) (bool, error) {
		m, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			s.mapper.Reset()
			m, err = s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
		if err != nil {
			return false, err
		}
		return m.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
	return policy.Check(objects, policy.Bounds{Namespace: s.namespace}, scope)
}

// remove uninstalls.
func (s *side) remove(last step) {
	s.Helper()
	if !s.person {
		s.uninstall(s.wanted(last, last.values))
		return
	}
	args := []string{"uninstall", "web", "--timeout", "1m", "--ignore-not-found"}
	if slices.Contains(last.flags, "--no-hooks") {
		args = append(args, "--no-hooks")
	}
	if _, err := s.run(s.T, s.namespace, args...); err != nil {
		s.Fatal(err)
	}
}

// test runs the chart's tests; the records have the result.
func (s *side) test(st step) {
	s.Helper()
	if s.person {
		_, _ = s.run(s.T, s.namespace, "test", "web", "--timeout", "1m")
		return
	}
	r := s.wanted(st, st.values)
	if _, err := s.Test(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	s.settle(r)
}

// configure sets Helm actions other than the default. Nothing is retried or remediated, because helm does neither.
func configure(r *Request, change func(*v1alpha1.HelmActions)) {
	r.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationNone}
	if change != nil {
		change(&r.Actions)
	}
}

// read returns the files of a folder of the sample.
func (s *side) read(folder string) (texts []string) {
	s.Helper()
	names, err := filepath.Glob(filepath.Join(s.charts, folder, "*"))
	if err != nil || len(names) == 0 {
		s.Fatalf("no files in %s: %v", folder, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			s.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// replace creates a kind or updates it.
func (s *side) replace(crd *unstructured.Unstructured) {
	s.Helper()
	const all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	client := s.admin.CoreV1().RESTClient()
	request := client.Post().AbsPath(all)
	for _, there := range s.kinds(s.Context()) {
		if there.GetName() == crd.GetName() {
			crd.SetResourceVersion(there.GetResourceVersion())
			request = client.Put().AbsPath(all, crd.GetName())
		}
	}
	body, err := crd.MarshalJSON()
	if err == nil {
		err = request.Param("fieldManager", kube.ManagedFieldsManager).SetHeader("Content-Type", "application/json").Body(body).Do(s.Context()).Error()
	}
	if err != nil {
		s.Fatal(err)
	}
}
