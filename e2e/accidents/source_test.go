//go:build e2e

package accidents

// sourceAccidents take away what Git is read with.
var sourceAccidents = []accident{
	{
		slip: "the Secret with the Git credentials is deleted", on: own,
		fate: "what runs stays Ready; the Repository names the Secret", mend: "the Secret is created again",
		says: []string{"Fetched", "False", "kubeop-system/$t-git"}, place: repository,
		do: all(kubectl("delete secret $t-git -n kubeop-system"), ask), back: secret,
	},
	{
		slip: "the Git credentials are replaced with wrong ones", on: own,
		fate: "what runs stays Ready; the Repository says AuthenticationFailed", mend: "the Secret is corrected, and used at once",
		says: []string{"AuthenticationFailed", "kubeop-system/$t-git"}, place: repository,
		do: all(kubectl("patch secret $t-git -n kubeop-system -p {\"stringData\":{\"password\":\"wrong\"}}"), ask), back: secret,
	},
	{
		slip: "the Secret of the push hook is deleted", on: own,
		fate: "pushes are found by polling only, and the Repository says so", mend: "the Secret is created again, and used at once",
		says: []string{"HookClosed", "SecretMissing", "kubectl create secret generic $t-hook"}, place: repository,
		do: func(s *scene) {
			key, err := platform.Kubectl(s.t.Context(), "get", "secret", s.tenant+"-hook", "-n", "kubeop-system", "-o", "go-template={{.data.token | base64decode}}")
			s.must(err)
			s.vars["key"] = key
			kubectl("delete secret $t-hook -n kubeop-system")(s)
		},
		back: func(s *scene) {
			s.must(platform.SetSecret(s.t.Context(), s.tenant+"-hook", map[string]string{"token": s.vars["key"]}))
			s.silent(repository, "HookClosed")
			edit("$r/apps/note0/app.yaml", "hello", "by the hook")(s)
			s.says(noteText("note0"), []string{"by the hook"})
			revert(s)
		},
	},
	{
		slip: "the repository is removed on the Git host", on: own,
		fate: "what runs stays Ready; the Repository says that it does not exist", mend: "it is restored",
		says: []string{"Fetched", "False", "$t.git"}, place: repository,
		do: all(vanish, ask), back: all(reappear, ask),
	},
	{
		slip: "the repository is removed on the Git host and created again, empty", on: own,
		fate: "what runs stays", mend: "the history is pushed again",
		says: []string{"SourceNotFound", "$t.git"}, place: repository,
		do: func(s *scene) {
			s.must(platform.OnServer(s.t.Context(), s.repo.Name, "update-ref", "-d", "refs/heads/main"))
			s.must(platform.OnServer(s.t.Context(), s.repo.Name, "gc", "--quiet", "--prune=now"))
			ask(s)
		},
		back: func(s *scene) { forcePush(s, "main") },
	},
	{
		slip: "the URL of a tenant's repository is changed to another repository", on: own,
		fate: "held: the tree declares nothing of what is applied", mend: "the URL is restored",
		says: append(held, "$ns/store-data"), place: repository, back: revertTenant, newPods: true,
		do: func(s *scene) {
			other, err := platform.CreateRepository(s.t.Context(), s.tenant+"-other", "")
			s.must(err)
			s.must(other.Write("kubeop.yaml", []byte("layout: v1\n")))
			s.must(other.Write("projects/theirs/project.yaml", []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: theirs}\n")))
			s.must(other.Push(s.t.Context(), "Theirs"))
			editTenant("/$t.git", "/$t-other.git")(s)
		},
	},
	{
		slip: "the URL of a tenant's repository is mistyped", on: own,
		fate: "what runs stays; the Repository names the URL", mend: "the URL is restored",
		says: []string{"Fetched", "False", "$tt.git"}, place: repository, back: revertTenant, do: editTenant("/$t.git", "/$tt.git"),
	},
	{
		slip: "the path of a tenant's repository is changed to an empty folder", on: own,
		fate: "what runs stays", mend: "the path is restored",
		says: []string{"SourceNotFound", "spec.path", "nowhere"}, place: repository, back: revertTenant, do: editTenant("  repository:\n", "  repository:\n    path: nowhere\n"),
	},
	{
		slip: "the branch of a tenant's repository is mistyped", on: own,
		fate: "what runs stays", mend: "the branch is restored",
		says: []string{"Fetched", "False", "mian"}, place: repository, back: revertTenant,
		do: editTenant("  repository:\n", "  repository:\n    ref: {branch: mian}\n"),
	},
	{
		slip: "the repository of a tenant is removed from tenant.yaml", on: own,
		fate: "its projects and their data stay", mend: "`git revert`",
		says: []string{"1 of its projects stay as they are", "spec.repository"}, place: tenantStatus, back: revertTenant,
		do: func(s *scene) {
			s.inRoot("Unbind "+s.tenant, func() {
				content := s.tenantFile[:len(s.tenantFile)-len(binding(s))]
				s.must(root.Write(s.expand("tenants/$t/tenant.yaml"), []byte(content)))
			})
		},
	},
	{
		slip: "the owners of a tenant are removed", on: inPlatform,
		fate: "its people lose access; what runs stays", mend: "`git revert`",
		says: []string{"spec.owners is empty"}, place: tenantStatus, back: revert,
		do: all(editTenant("[{kind: User, name: $t-admin, role: admin}]", "[]"), func(s *scene) {
			s.silent(output("get rolebindings -n $ns -o yaml"), "$t-admin")
		}),
	},
}

// secret writes the Git credentials as they were.
func secret(s *scene) {
	s.must(platform.SetSecret(s.t.Context(), s.tenant+"-git", map[string]string{"username": s.repo.User, "password": s.repo.Password}))
}

func vanish(s *scene) { s.must(platform.Vanish(s.repo.Name)) }

func reappear(s *scene) { s.must(platform.Return(s.repo.Name)) }
