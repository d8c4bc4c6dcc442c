package policy

import "testing"

func TestCheckRefusesForeignIdentities(t *testing.T) {
	const (
		binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, subjects: [`
		outside = `, which is outside of namespace kubeop-acme-web`
		people  = `, which people act as by kubeconfigs; a binding may name single accounts of the app`
		runsAs  = ` would run as service account kubeop-deployer, which is the platform's; use one of the app's own, named in Git`
		forged  = `; only kubeop sets labels, annotations and finalizers of paas.kubeop.io`
	)
	tests := map[string]struct {
		object     string
		rule, want string // no rule: allowed
	}{
		"account of another namespace": {binding + `{kind: ServiceAccount, name: x, namespace: other}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to service account other/x" + outside},
		"second subject": {binding + `{kind: User, name: ann}, {kind: ServiceAccount, name: x, namespace: other}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to service account other/x" + outside},
		"account of another namespace as a user": {binding + `{kind: User, name: "system:serviceaccount:other:x"}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to system:serviceaccount:other:x" + outside},
		"an account as a user, of a namespace whose name begins alike": {binding + `{kind: User, name: "system:serviceaccount:kubeop-acme-web2:x"}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to system:serviceaccount:kubeop-acme-web2:x" + outside},
		"all accounts of another namespace": {binding + `{kind: Group, name: "system:serviceaccounts:kubeop-acme-web2"}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to system:serviceaccounts:kubeop-acme-web2" + outside},
		"everybody": {binding + `{kind: Group, name: "system:authenticated"}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to system:authenticated" + outside},
		"own account":               {binding + `{kind: ServiceAccount, name: x, namespace: kubeop-acme-web}]}`, "", ""},
		"own account, no namespace": {binding + `{kind: ServiceAccount, name: x}]}`, "", ""},
		"own accounts": {binding + `{kind: Group, name: "system:serviceaccounts:kubeop-acme-web"}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to system:serviceaccounts:kubeop-acme-web" + people},
		"the account of people": {binding + `{kind: ServiceAccount, name: kubeop-access-view, namespace: kubeop-acme-web}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to kubeop-access-view" + people},
		"the account of people, no namespace": {binding + `{kind: ServiceAccount, name: kubeop-access-view}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to kubeop-access-view" + people},
		"the account of people as a user": {binding + `{kind: User, name: "system:serviceaccount:kubeop-acme-web:kubeop-access-edit"}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to system:serviceaccount:kubeop-acme-web:kubeop-access-edit" + people},
		"the account of people elsewhere": {binding + `{kind: ServiceAccount, name: kubeop-access-view, namespace: other}]}`, "ForeignSubject",
			"RoleBinding/a gives rights to service account other/kubeop-access-view" + outside},
		"a person with the name of an account": {binding + `{kind: User, name: kubeop-access-view}]}`, "", ""},
		"own account as a user":                {binding + `{kind: User, name: "system:serviceaccount:kubeop-acme-web:x"}]}`, "", ""},
		"a person":                             {binding + `{kind: User, name: ann}]}`, "", ""},
		"subjects of another kind of RBAC": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: Other, metadata: {name: a},
			subjects: [{kind: ServiceAccount, name: x, namespace: other}]}`, "", ""},
		"subjects of another group": {`{apiVersion: example.com/v1, kind: RoleBinding, metadata: {name: a},
			subjects: [{kind: ServiceAccount, name: x, namespace: other}]}`, "", ""},
		"no subjects": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, subjects: x}`, "", ""},

		"a record of a release": {`{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {name: a}}`, "ReleaseRecord",
			"Secret/a is a record of Helm's; only Helm itself writes the history of a release"},
		"the name of a record": {`{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.db.v9}}`, "ReleaseRecord",
			"Secret/sh.helm.release.v1.db.v9 is a record of Helm's; only Helm itself writes the history of a release"},
		"a ConfigMap with such a name": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: sh.helm.release.v1.db.v9}}`, "", ""},

		"pod as the deployer": {`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: kubeop-deployer}}`, "PlatformIdentity",
			"Pod/a" + runsAs},
		"pod as the deployer, old field": {`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccount: kubeop-deployer}}`, "PlatformIdentity",
			"Pod/a" + runsAs},
		"cron job as the deployer": {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a},
			spec: {jobTemplate: {spec: {template: {spec: {serviceAccountName: kubeop-deployer}}}}}}`, "PlatformIdentity", "CronJob/a" + runsAs},
		"custom kind as the deployer": {`{apiVersion: example.com/v1, kind: Workflow, metadata: {name: a},
			spec: {steps: [{serviceAccountName: kubeop-deployer}]}}`, "PlatformIdentity", "Workflow/a" + runsAs},
		"pod as itself": {`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: web}}`, "", ""},

		"token of the deployer": {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
			metadata: {name: a, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}`, "PlatformToken",
			"Secret/a requests a token of service account kubeop-deployer, which is the platform's"},
		"token of the deployer beside a broken annotation": {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
			metadata: {name: a, annotations: {kubernetes.io/service-account.name: kubeop-deployer, x: 1}}}`, "PlatformToken",
			"Secret/a requests a token of service account kubeop-deployer, which is the platform's"},
		"token of an own account": {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
			metadata: {name: a, annotations: {kubernetes.io/service-account.name: web}}}`, "", ""},

		"the deployer's annotation on a Secret of another type": {`{apiVersion: v1, kind: Secret, type: Opaque,
			metadata: {name: a, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}`, "", ""},
		"the deployer's token as another kind": {`{apiVersion: v1, kind: ConfigMap, type: kubernetes.io/service-account-token,
			metadata: {name: a, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}`, "", ""},
		"the deployer's token of another group": {`{apiVersion: example.com/v1, kind: Secret, type: kubernetes.io/service-account-token,
			metadata: {name: a, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}`, "", ""},
		"a record of a release of another group": {`{apiVersion: example.com/v1, kind: Secret, type: helm.sh/release.v1, metadata: {name: a}}`, "", ""},

		"forged label": {`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {paas.kubeop.io/tenant: other}}}`, "ForgedMark",
			"Secret/a carries paas.kubeop.io/tenant" + forged},
		"forged label beside a broken one": {`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {x: 1, paas.kubeop.io/tenant: other}}}`, "ForgedMark",
			"Secret/a carries paas.kubeop.io/tenant" + forged},
		"forged annotation": {`{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {sub.PaaS.kubeop.io/x: y}}}`, "ForgedMark",
			"Secret/a carries sub.PaaS.kubeop.io/x" + forged},
		"forged finalizer": {`{apiVersion: v1, kind: Secret, metadata: {name: a, finalizers: [x/y, paas.kubeop.io/finalizer]}}`, "ForgedMark",
			"Secret/a carries paas.kubeop.io/finalizer" + forged},
		"forged label of pods": {`{apiVersion: batch/v1, kind: Job, metadata: {name: a},
			spec: {template: {metadata: {labels: {paas.kubeop.io/app: other}}}}}`, "ForgedMark", "Job/a carries paas.kubeop.io/app" + forged},
		"forged label before a clean template": {`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {paas.kubeop.io/app: other}},
			spec: {template: {metadata: {labels: {app: other}}}}}`, "ForgedMark", "Job/a carries paas.kubeop.io/app" + forged},
		"labels that are not metadata": {`{apiVersion: example.com/v1, kind: Match, metadata: {name: a}, spec: {pods: {labels: {paas.kubeop.io/app: shop}}}}`, "", ""},
		"metadata that is a text":      {`{apiVersion: example.com/v1, kind: Match, metadata: {name: a}, spec: {metadata: paas.kubeop.io/app}}`, "", ""},
		"selecting by our labels":      {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {paas.kubeop.io/app: shop}}}`, "", ""},
		"label that ends like ours":    {`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {mypaas.kubeop.io/x: y}}}`, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, tc.object, tc.rule, tc.want)
		})
	}
}
