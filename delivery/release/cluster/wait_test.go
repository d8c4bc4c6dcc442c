package cluster

import "testing"

func TestHowAHookFailed(t *testing.T) {
	condition := func(fields string) string {
		return "status: {conditions: [{type: Failed, status: \"True\"" + fields + "}]}\n"
	}
	tests := map[string]struct{ status, want string }{
		"with a message":      {condition(", reason: Late, message: past its deadline"), "failed: past its deadline"},
		"with a reason":       {condition(", reason: Late"), "failed: Late"},
		"with an empty one":   {condition(", message: \"\""), "failed"},
		"with nothing at all": {condition(""), "failed"},
		"not yet":             {"status: {}\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			done, err := jobDone(object(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\n"+test.status))
			if done != (test.want != "") || err != nil != done || err != nil && err.Error() != test.want {
				t.Errorf("got %t, %v", done, err)
			}
		})
	}
}
