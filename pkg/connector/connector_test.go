package connector

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const version = "apiVersion: maint.dev/v1alpha1\n"

func TestWhatIsWrongWithAConnector(t *testing.T) {
	account := func(rest string) string {
		return version + "kind: CloudProvider\nspec: {type: aws, aws: {accountId: \"123456789012\", region: ap-southeast-3, " + rest + "}}\n"
	}
	provider := func(spec string) string { return version + "kind: CloudProvider\nspec: " + spec + "\n" }
	other := func(spec string) string { return version + "kind: K8SCluster\nspec: " + spec + "\n" }
	for name, c := range map[string]struct {
		text string
		want []string // parts of the faults, each of another; none: it is valid
	}{
		"an account by the plan's ServiceAccount":   {text: account("auth: {serviceAccount: {}}")},
		"an account by keys":                        {text: account("auth: {static: {secretRef: {name: keys}}}")},
		"with a role in it":                         {text: account("auth: {serviceAccount: {}}, assumeRoleArn: \"arn:aws:iam::123456789012:role/maint/runner\"")},
		"of China":                                  {text: provider("{type: aws, aws: {accountId: \"123456789012\", region: cn-north-1, assumeRoleArn: \"arn:aws-cn:iam::123456789012:role/x\", auth: {serviceAccount: {}}}}")},
		"a role of another account":                 {text: account("auth: {serviceAccount: {}}, assumeRoleArn: \"arn:aws:iam::999999999999:role/x\""), want: []string{"assumeRoleArn: is a role of account 999999999999"}},
		"a user as role":                            {text: account("auth: {serviceAccount: {}}, assumeRoleArn: \"arn:aws:iam::123456789012:user/x\""), want: []string{"assumeRoleArn: \"arn:aws:iam::123456789012:user/x\" is no role"}},
		"no way in":                                 {text: account("auth: {}"), want: []string{"spec.aws.auth: is empty"}},
		"no auth at all":                            {text: provider("{type: aws, aws: {accountId: \"123456789012\", region: eu-central-1}}"), want: []string{"spec.aws.auth: is empty"}},
		"two ways in":                               {text: account("auth: {serviceAccount: {}, static: {secretRef: {name: keys}}}"), want: []string{"write one of them"}},
		"keys of no Secret":                         {text: account("auth: {static: {}}"), want: []string{"static.secretRef.name: is missing"}},
		"a ServiceAccount's name is the plan's":     {text: account("auth: {serviceAccount: {name: x}}"), want: []string{"name"}},
		"keys in the document":                      {text: account("auth: {static: {accessKeyId: x, secretRef: {name: keys}}}"), want: []string{"accessKeyId"}},
		"an account as a number":                    {text: provider("{type: aws, aws: {accountId: 123456789012, region: eu-central-1, auth: {serviceAccount: {}}}}"), want: []string{"accountId"}},
		"an account that is too short":              {text: provider("{type: aws, aws: {accountId: \"12345\", region: eu-central-1, auth: {serviceAccount: {}}}}"), want: []string{"is no account of AWS"}},
		"a region with a zone":                      {text: provider("{type: aws, aws: {accountId: \"123456789012\", region: eu-central-1a, auth: {serviceAccount: {}}}}"), want: []string{"is no region"}},
		"all of it at once":                         {text: provider("{type: aws, aws: {assumeRoleArn: x, auth: {}}}"), want: []string{"accountId: is missing", "region: is missing", "assumeRoleArn", "auth: is empty"}},
		"no type":                                   {text: provider("{}"), want: []string{"spec.type: is missing"}},
		"another cloud":                             {text: provider("{type: gcp}"), want: []string{"spec.type: \"gcp\" is not supported; there is aws"}},
		"no account":                                {text: provider("{type: aws}"), want: []string{"spec.aws: is missing"}},
		"a cluster of EKS":                          {text: other("{providerRef: {name: aws-stg}, eks: {name: stg-eks-1, region: ap-southeast-3}}")},
		"in its provider's region":                  {text: other("{providerRef: {name: aws-stg}, eks: {name: stg_eks}}")},
		"a cluster of EKS of no account":            {text: other("{eks: {name: stg-eks-1}}"), want: []string{"spec.providerRef: is missing"}},
		"a cluster of EKS without a name":           {text: other("{providerRef: {}, eks: {region: x}}"), want: []string{"providerRef.name: is missing", "eks.name: is missing", "eks.region"}},
		"a cluster by its kubeconfig":               {text: other("{k8s: {kubeconfigRef: {name: other, key: config}}}")},
		"a kubeconfig of no Secret":                 {text: other("{k8s: {}}"), want: []string{"kubeconfigRef.name: is missing"}},
		"a kubeconfig in an account":                {text: other("{providerRef: {name: x}, k8s: {kubeconfigRef: {name: other}}}"), want: []string{"spec.providerRef: is for eks"}},
		"a cluster twice":                           {text: other("{providerRef: {name: x}, eks: {name: a}, k8s: {kubeconfigRef: {name: other}}}"), want: []string{"spec: has eks and k8s"}},
		"a cluster of nowhere":                      {text: other("{}"), want: []string{"does not say how its cluster is reached"}},
		"GKE is not known":                          {text: other("{gke: {name: x}}"), want: []string{"gke", "does not say how its cluster"}},
		"a kind with a slip":                        {text: version + "kind: CloudProvidr\nspec: {}\n", want: []string{"did you mean CloudProvider?"}},
		"no kind":                                   {text: version + "spec: {}\n", want: []string{"kind: is missing"}},
		"another version":                           {text: "apiVersion: v1\nkind: K8SCluster\nspec: {k8s: {kubeconfigRef: {name: other}}}\n", want: []string{"apiVersion: must be maint.dev/v1alpha1"}},
		"no document":                               {text: "", want: []string{"the document is empty"}},
		"a field beside the spec of a known kind":   {text: version + "kind: K8SCluster\nspek: {}\n", want: []string{"spek", "does not say how its cluster"}},
		"a field beside the spec of an unknown one": {text: version + "kind: Connector\nspek: {}\n", want: []string{"spek", "kind: must be one of"}},
	} {
		t.Run(name, func(t *testing.T) {
			one, faults := Parse([]byte(c.text))
			var said []string
			for _, f := range faults {
				said = append(said, f.String())
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
					t.Errorf("lacks %q among\n%s", want, strings.Join(said, "\n"))
				}
			}
			if len(said) != len(c.want) {
				t.Errorf("says %d things, want %d:\n%s", len(said), len(c.want), strings.Join(said, "\n"))
			}
			if again := Check(one); len(c.want) == 0 && len(again) > 0 {
				t.Errorf("it is valid as a document, and as a record not: %v", again)
			}
		})
	}
}

func TestAConnectorAsItIsRead(t *testing.T) {
	got, faults := Parse([]byte(version + "kind: CloudProvider\nspec: {type: aws, aws: {accountId: \"012345678901\", region: eu-central-1, auth: {serviceAccount: {}}}}\n"))
	want := Connector{Cloud: &CloudSpec{Type: TypeAWS, AWS: &AWS{AccountID: "012345678901", Region: "eu-central-1", Auth: Auth{ServiceAccount: &ServiceAccountAuth{}}}}}
	if diff := cmp.Diff(want, got); diff != "" || len(faults) > 0 {
		t.Errorf("%v\n%s", faults, diff)
	}
	if got.Kind() != CloudProvider {
		t.Errorf("it is a %q", got.Kind())
	}
}

// While something sleeps the connector may be edited, for instance to mend its
// credentials. It still counts where it leads to what was put to sleep.
func TestWhetherTwoConnectorsLeadToTheSame(t *testing.T) {
	aws := func(account, region string, auth Auth) Connector {
		return Connector{Cloud: &CloudSpec{Type: TypeAWS, AWS: &AWS{AccountID: account, Region: region, Auth: auth}}}
	}
	keys, token := Auth{Static: &StaticAuth{SecretRef: Ref{Name: "keys"}}}, Auth{ServiceAccount: &ServiceAccountAuth{}}
	eks := func(provider *Ref, name, region string) Connector {
		return Connector{Cluster: &ClusterSpec{ProviderRef: provider, EKS: &EKSCluster{Name: name, Region: region}}}
	}
	stg, prod := &Ref{Name: "stg"}, &Ref{Name: "prod"}
	kubeconfig := Connector{Cluster: &ClusterSpec{K8S: &Kubernetes{KubeconfigRef: KubeconfigRef{Name: "other"}}}}
	for name, c := range map[string]struct {
		one, other Connector
		want       bool
	}{
		"an account with other credentials":         {aws("1", "eu-central-1", keys), aws("1", "eu-central-1", token), true},
		"another account":                           {aws("1", "eu-central-1", keys), aws("2", "eu-central-1", keys), false},
		"another region":                            {aws("1", "eu-central-1", keys), aws("1", "eu-west-1", keys), false},
		"a cluster of EKS, read twice":              {eks(stg, "a", "eu-central-1"), eks(&Ref{Name: "stg"}, "a", "eu-central-1"), true},
		"a cluster of another name":                 {eks(stg, "a", ""), eks(stg, "b", ""), false},
		"a cluster in another region":               {eks(stg, "a", "eu-central-1"), eks(stg, "a", "eu-west-1"), false},
		"a cluster of that name in another account": {eks(stg, "a", ""), eks(prod, "a", ""), false},
		"clusters of nobody's account":              {eks(nil, "a", ""), eks(nil, "a", ""), false},
		"an account, and a cluster":                 {aws("1", "eu-central-1", keys), eks(stg, "a", "eu-central-1"), false},
		"a cluster, and an account":                 {eks(stg, "a", "eu-central-1"), aws("1", "eu-central-1", keys), false},
		"a kubeconfig, of which nobody can tell":    {kubeconfig, kubeconfig, false},
		"an account, and one that says nothing":     {aws("1", "eu-central-1", keys), Connector{Cloud: &CloudSpec{}}, false},
		"one that says nothing, and an account":     {Connector{Cloud: &CloudSpec{}}, aws("1", "eu-central-1", keys), false},
		"a cluster, and a kubeconfig":               {eks(stg, "a", ""), kubeconfig, false},
		"nothing at all":                            {Connector{}, Connector{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.one.LeadsTo(c.other); got != c.want {
				t.Errorf("it leads there: %t", got)
			}
		})
	}
}

func TestTheKindOfAConnector(t *testing.T) {
	for want, c := range map[string]Connector{
		CloudProvider: {Cloud: &CloudSpec{}}, K8SCluster: {Cluster: &ClusterSpec{}}, "": {},
	} {
		if got := c.Kind(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAKubeconfigStandsUnderItsKey(t *testing.T) {
	for key, want := range map[string]string{"": "kubeconfig", "config": "config"} {
		if got := (KubeconfigRef{Name: "other", Key: key}).DataKey(); got != want {
			t.Errorf("%q is read from %q", key, got)
		}
	}
}

func TestARecordThatIsNoConnectorIsSaidToBeNone(t *testing.T) {
	for name, one := range map[string]Connector{
		"of no kind":      {},
		"of two":          {Cloud: &CloudSpec{}, Cluster: &ClusterSpec{}},
		"an empty one":    {Cloud: &CloudSpec{}},
		"of another type": {Cloud: &CloudSpec{Type: "gcp"}},
	} {
		if len(Check(one)) == 0 {
			t.Errorf("a record %s passes", name)
		}
	}
}

func TestTheProviderOfACluster(t *testing.T) {
	eks, ref := &EKSCluster{}, &Ref{Name: "prod"}
	for name, c := range map[string]struct {
		spec ClusterSpec
		is   bool
	}{
		"a cluster of EKS":                        {ClusterSpec{EKS: eks, ProviderRef: ref}, true},
		"a cluster of EKS that names no provider": {ClusterSpec{EKS: eks}, false},
		"a cluster with a kubeconfig":             {ClusterSpec{ProviderRef: ref}, false},
		"neither":                                 {ClusterSpec{}, false},
	} {
		want := Reference{}
		if c.is {
			want = Reference{Kind: CloudProvider, Name: "prod"}
		}
		if got, is := c.spec.Provider(); is != c.is || got != want {
			t.Errorf("%s: %+v, %v", name, got, is)
		}
	}
}
