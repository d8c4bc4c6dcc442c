//go:build e2e

package accidents

// sourceAccidents remove or break what the operator needs to read Git: credentials, hooks, repositories.
var sourceAccidents = []accident{
	{
		mistake: "the Secret with the Git credentials is deleted", on: own,
		outcome: "what runs stays Ready; the Repository names the Secret", recovery: "the Secret is created again",
		reports: []string{"Fetched", "False", "kubeop-system/$t-git"}, read: repository,
		do: all(kubectl("delete secret $t-git -n kubeop-system"), requestReconcile), undo: secret,
	},
	{
		mistake: "the Git credentials are replaced with wrong ones", on: own,
		outcome: "what runs stays Ready; the Repository says AuthenticationFailed", recovery: "the Secret is corrected, and used at once",
		reports: []string{"AuthenticationFailed", "kubeop-system/$t-git"}, read: repository,
		do: all(kubectl("patch secret $t-git -n kubeop-system -p {\"stringData\":{\"password\":\"wrong\"}}"), requestReconcile), undo: secret,
	},
	{
		mistake: "the Secret of the push hook is deleted", on: own,
		outcome: "pushes are found by polling only, and the Repository says so", recovery: "the Secret is created again, and used at once",
		reports: []string{"HookClosed", "SecretMissing", "kubectl create secret generic $t-hook"}, read: repository,
		do: func(s *subject) {
			key, err := platform.Kubectl(s.t.Context(), "get", "secret", s.tenant+"-hook", "-n", "kubeop-system", "-o", "go-template={{.data.token | base64decode}}")
			s.must(err)
			s.vars["key"] = key
			kubectl("delete secret $t-hook -n kubeop-system")(s)
		},
		undo: func(s *subject) {
			s.must(platform.SetSecret(s.t.Context(), s.tenant+"-hook", map[string]string{"token": s.vars["key"]}))
			s.mustNotReport(repository, "HookClosed")
			edit("$r/apps/note0/app.yaml", "hello", "by the hook")(s)
			s.mustReport(noteText("note0"), []string{"by the hook"})
			revert(s)
		},
	},
	{
		mistake: "the repository is removed on the Git host", on: own,
		outcome: "what runs stays Ready; the Repository says that it does not exist", recovery: "it is restored",
		reports: []string{"Fetched", "False", "$t.git"}, read: repository,
		do: all(vanish, requestReconcile), undo: all(reappear, requestReconcile),
	},
	{
		mistake: "the repository is removed on the Git host and created again, empty", on: own,
		outcome: "what runs stays", recovery: "the history is pushed again",
		reports: []string{"SourceNotFound", "$t.git"}, read: repository,
		do: func(s *subject) {
			s.must(platform.OnServer(s.t.Context(), s.repo.Name, "update-ref", "-d", "refs/heads/main"))
			s.must(platform.OnServer(s.t.Context(), s.repo.Name, "gc", "--quiet", "--prune=now"))
			requestReconcile(s)
		},
		undo: func(s *subject) { forcePush(s, "main") },
	},
	{
		mistake: "the URL of a tenant's repository is changed to another repository", on: own,
		outcome: "held: the tree declares nothing of what is applied", recovery: "the URL is restored",
		reports: append(held, "$ns/store-data"), read: repository, undo: revertTenant, newPods: true,
		do: func(s *subject) {
			other, err := platform.CreateRepository(s.t.Context(), s.tenant+"-other", "")
			s.must(err)
			s.must(other.Write("kubeop.yaml", []byte("layout: v1\n")))
			s.must(other.Write("projects/theirs/project.yaml", []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: theirs}\n")))
			s.must(other.Push(s.t.Context(), "Theirs"))
			editTenant("/$t.git", "/$t-other.git")(s)
		},
	},
	{
		mistake: "the URL of a tenant's repository is mistyped", on: own,
		outcome: "what runs stays; the Repository names the URL", recovery: "the URL is restored",
		reports: []string{"Fetched", "False", "$tt.git"}, read: repository, undo: revertTenant, do: editTenant("/$t.git", "/$tt.git"),
	},
	{
		mistake: "the path of a tenant's repository is changed to an empty folder", on: own,
		outcome: "what runs stays", recovery: "the path is restored",
		reports: []string{"SourceNotFound", "spec.path", "nowhere"}, read: repository, undo: revertTenant, do: editTenant("  repository:\n", "  repository:\n    path: nowhere\n"),
	},
	{
		mistake: "the branch of a tenant's repository is mistyped", on: own,
		outcome: "what runs stays", recovery: "the branch is restored",
		reports: []string{"Fetched", "False", "mian"}, read: repository, undo: revertTenant,
		do: editTenant("  repository:\n", "  repository:\n    ref: {branch: mian}\n"),
	},
	{
		mistake: "the repository of a tenant is removed from tenant.yaml", on: own,
		outcome: "its projects and their data stay", recovery: "`git revert`",
		reports: []string{"1 of its projects stay as they are", "spec.repository"}, read: tenantStatus, undo: revertTenant,
		do: func(s *subject) {
			s.inRoot("Unbind "+s.tenant, func() {
				content := s.tenantFile[:len(s.tenantFile)-len(binding(s))]
				s.must(root.Write(s.expand("tenants/$t/tenant.yaml"), []byte(content)))
			})
		},
	},
	{
		mistake: "the owners of a tenant are removed", on: inPlatform,
		outcome: "its people lose access; what runs stays", recovery: "`git revert`",
		reports: []string{"spec.owners is empty"}, read: tenantStatus, undo: revert,
		do: all(editTenant("[{kind: User, name: $t-admin, role: admin}]", "[]"), func(s *subject) {
			s.mustNotReport(output("get rolebindings -n $ns -o yaml"), "$t-admin")
		}),
	},
}

// secret restores the Git credentials.
func secret(s *subject) {
	s.must(platform.SetSecret(s.t.Context(), s.tenant+"-git", map[string]string{"username": s.repo.User, "password": s.repo.Password}))
}

func vanish(s *subject) { s.must(platform.Vanish(s.repo.Name)) }

func reappear(s *subject) { s.must(platform.Return(s.repo.Name)) }
