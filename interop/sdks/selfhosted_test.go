package sdks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"
	miniocreds "github.com/minio/minio-go/v7/pkg/credentials"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// newGitLab: of itself it asks first what the limit is, takes that to be per minute,
// and sends two thirds of it.
func newGitLab(c *http.Client, own bool) (*gitlab.Client, error) {
	opts := []gitlab.ClientOptionFunc{
		gitlab.WithHTTPClient(c), gitlab.WithBaseURL("http://gitlab.test"), gitlab.WithCustomLimiter(rate.NewLimiter(rate.Inf, 0)),
	}
	if !own {
		opts = append(opts, gitlab.WithoutRetries())
	}
	return gitlab.NewClient("glpat-x", opts...)
}

func newMinIO(c *http.Client, own bool) (*minio.Client, error) {
	o := &minio.Options{Creds: miniocreds.NewStaticV4("AK", "SK", ""), Transport: c.Transport, Region: "us-east-1"}
	if !own {
		o.MaxRetries = 1
	}
	return minio.New("minio.test", o)
}

// newKubernetes: client-go repeats what came with Retry-After, ten times, and slows
// itself down to five requests a second unless QPS is negative.
func newKubernetes(c *http.Client) (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://kubernetes.test", QPS: -1}, c)
}

// gitLab, minIO and kubernetesAPI are the last of sdks.
func gitLab() sdk {
	return sdk{
		name: "gitlab client-go", mayRefuse: 3, both: 18, ours: 3, theirs: 6,
		state: func(h http.Header, s standing) {
			h.Set("RateLimit-Limit", fmt.Sprint(s.limit))
			h.Set("RateLimit-Observed", fmt.Sprint(s.limit-s.remaining))
			h.Set("RateLimit-Remaining", fmt.Sprint(s.remaining))
			h.Set("RateLimit-Reset", fmt.Sprint(s.reset.Unix()))
			h.Set("RateLimit-Name", "throttle_authenticated_api")
		},
		deny: func(w http.ResponseWriter, wait int, _ int64) {
			w.Header().Set("Retry-After", fmt.Sprint(wait))
			refuse(w, 429, `{"message":"429 Too Many Requests"}`)
		},
		body: `{"id":1,"name":"weir"}`,
		call: func(c *http.Client, own bool) func(context.Context) error {
			gl, err := newGitLab(c, own)
			return func(ctx context.Context) error {
				if err != nil {
					return err
				}
				p, _, err := gl.Projects.GetProject(1, nil, gitlab.WithContext(ctx))
				if err != nil {
					return err
				}
				return is(p.Name, "weir", nil)
			}
		},
	}
}

func minIO() sdk {
	return sdk{
		name: "minio-go", mayRefuse: 40, both: 20, ours: 3, theirs: 10, // 30, but for the circuit
		deny: func(w http.ResponseWriter, _ int, n int64) {
			refuse(w, 429, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>TooManyRequests</Code><Message>Deadline exceeded while waiting in incoming queue, please reduce your request rate</Message><RequestId>R`+fmt.Sprint(n)+`</RequestId></Error>`)
		},
		body: `<?xml version="1.0" encoding="UTF-8"?><ListAllMyBucketsResult><Buckets><Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>`,
		call: func(c *http.Client, own bool) func(context.Context) error {
			client, err := newMinIO(c, own)
			return func(ctx context.Context) error {
				if err != nil {
					return err
				}
				buckets, err := client.ListBuckets(ctx)
				if err != nil {
					return err
				}
				return is(buckets[0].Name, "b", nil)
			}
		},
	}
}

func kubernetesAPI() sdk {
	return sdk{
		name: "kubernetes client-go", mayRefuse: 12, both: 3, ours: 3, theirs: 1,
		deny: func(w http.ResponseWriter, wait int, _ int64) {
			w.Header().Set("Retry-After", fmt.Sprint(wait))
			refuse(w, 429, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too many requests, please try again later","reason":"TooManyRequests","code":429}`)
		},
		body: `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`,
		call: func(c *http.Client, _ bool) func(context.Context) error {
			set, err := newKubernetes(c)
			return func(ctx context.Context) error {
				if err != nil {
					return err
				}
				ns, err := set.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
				if err != nil {
					return err
				}
				return is(ns.Name, "default", nil)
			}
		},
	}
}
