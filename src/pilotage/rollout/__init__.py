"""Deploy, change, roll back and follow endpoints: what a front end calls, whether it is a command line or a server.

`spec` decides what a spec becomes, `status` how far a change has come and whether it has ended: both are pure.
`requests` reads and writes endpoints, each after a dry run; `follow` observes one until its change has ended. Nothing
here prints or knows an exit code. A request that contradicts itself raises RequestError, one that names nothing or that
the server refuses raises TargetError, and an API that does not answer raises ApiError.
"""
